/** Steps and notes come on to the canvas: from the palette, the pop-up, a wire, a drop, the clipboard. */

import { edgeId } from "../canvas/flow";
import type { Drawn } from "../canvas/gestures";
import type { NodeType } from "../model/catalog";
import type { Position } from "../model/definition";
import { edgesOf, nodesOf } from "../model/document";
import { addNote } from "../model/edits/canvas";
import { USUAL_SIZE } from "../model/sizes";
import type { OpenEnd } from "../model/wiring";
import { texts } from "../texts";
import { addAfter, addAround, addForWire, addOnEdge, addStep } from "./insertion";
import { rememberType } from "./recent";
import { chosenStep } from "./selection";
import { documentOf, type EditorSession, isReadOnly, notify } from "./session";

/** What a type was dropped on. */
export interface DropPlace {
  readonly at: Position;
  /** The step below the pointer. */
  readonly node: string | null;
  /** The edge below the pointer, by its id on the canvas. */
  readonly edge: string | null;
  readonly container: string | null;
}

const words = texts.editor;
export const newId = (): string => crypto.randomUUID();

function finish(session: EditorSession, id: string, type: NodeType): void {
  session.editor.actions.select([id]);
  rememberType(type.type);
  session.ui.setState({ quickAdd: null });
}

/** After the selected step, wired to it; without one, in the middle of what is seen. */
export function addBySelection(session: EditorSession, type: NodeType): void {
  if (isReadOnly(session)) return;
  const after = chosenStep(session);
  const id = newId();
  const { edit } = session.editor.actions;
  if (type.middleware) {
    if (after === null) {
      notify(session, words.notices.middlewareNeedsStep(type.label));
      return;
    }
    edit(words.did.add(type.label), (document) => addAround(document, { id, type }, after));
  } else if (after === null) {
    const middle = session.canvas.current?.middle();
    const at = middle === undefined ? { x: 0, y: 0 } : centred(session.canvas.current?.toFlow(middle));
    edit(words.did.add(type.label), (document) => addStep(document, { id, type, at: freeNear(session, at) }));
  } else {
    edit(words.did.add(type.label), (document) => addAfter(document, session.catalog(), { id, type }, after));
  }
  finish(session, id, type);
  session.canvas.current?.reveal(id);
}

const centred = (at: Position = { x: 0, y: 0 }): Position => ({
  x: Math.round((at.x - USUAL_SIZE.width / 2) / 8) * 8,
  y: Math.round((at.y - USUAL_SIZE.height / 2) / 8) * 8,
});

function freeNear(session: EditorSession, at: Position): Position {
  const taken = nodesOf(documentOf(session)).map((node) => node.position ?? { x: 0, y: 0 });
  let free = at;
  while (taken.some((one) => Math.abs(one.x - free.x) < 48 && Math.abs(one.y - free.y) < 48))
    free = { x: free.x + 48, y: free.y + 48 };
  return free;
}

/** Where a pointer let it go. */
export function addByDrop(session: EditorSession, type: NodeType, place: DropPlace): void {
  if (isReadOnly(session)) return;
  const id = newId();
  const at = centred(place.at);
  const { edit } = session.editor.actions;
  const document = documentOf(session);
  const host = nodesOf(document).find((node) => node.id === place.node);
  if (type.middleware) {
    if (host === undefined) {
      notify(session, words.notices.middlewareNeedsStep(type.label));
      return;
    }
    edit(words.did.add(type.label), (before) => addAround(before, { id, type }, host));
  } else {
    const wire = edgesOf(document).findIndex((edge) => edgeId(edge) === place.edge);
    edit(words.did.add(type.label), (before) =>
      wire >= 0
        ? addOnEdge(before, session.catalog(), { id, type, at }, wire)
        : addStep(before, { id, type, at, parent: place.container }),
    );
  }
  finish(session, id, type);
}

/** At the end of a wire that was dropped on the empty canvas. */
export function addByWire(session: EditorSession, type: NodeType, open: OpenEnd, at: Position): void {
  if (isReadOnly(session)) return;
  const id = newId();
  const shifted = open.side === "source" ? at : { x: at.x - USUAL_SIZE.width, y: at.y };
  session.editor.actions.edit(words.did.add(type.label), (document) =>
    addForWire(document, session.catalog(), { id, type, at: { x: shifted.x, y: shifted.y - 32 } }, open),
  );
  finish(session, id, type);
}

export function addByPoint(session: EditorSession, type: NodeType, at: Position): void {
  addByDrop(session, type, { at, node: null, edge: null, container: null });
}

export function addNoteAt(session: EditorSession, at: Position): void {
  if (isReadOnly(session)) return;
  const id = newId();
  const position = { x: Math.round(at.x / 8) * 8, y: Math.round(at.y / 8) * 8 };
  session.editor.actions.edit(words.did.addNote, (document) =>
    addNote(document, { id, text: "", position, width: 240, height: 120 }),
  );
  session.editor.actions.select([id]);
  session.decor.setState({ naming: id });
}

/** The innermost container at a place. */
export function containerAt(
  drawn: readonly Drawn[],
  at: Position,
  without: ReadonlySet<string>,
): string | null {
  const around = drawn
    .filter((one) => one.kind === "container" && !without.has(one.id))
    .filter((one) => at.x > one.x && at.x < one.x + one.width && at.y > one.y && at.y < one.y + one.height)
    .sort((one, other) => one.width * one.height - other.width * other.height);
  return around[0]?.id ?? null;
}
