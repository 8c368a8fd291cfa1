/** Where things are on the canvas: nudge, tidy up, align and distribute. Each is one entry of the history. */

import type { Drawn } from "../canvas/gestures";
import { type Alignment, type Axis, aligned, type Box, distributed } from "../model/aligning";
import type { NodeDefinition, Position } from "../model/definition";
import { nodesOf, notesOf, type WorkflowDocument } from "../model/document";
import { changeNote } from "../model/edits/canvas";
import { moveNodes, withMembers } from "../model/edits/nodes";
import { GRID, type Size, USUAL_SIZE } from "../model/sizes";
import { texts } from "../texts";
import { loadLayout } from "./loadLayout";
import { chosen, chosenSteps } from "./selection";
import { documentOf, type EditorSession, isReadOnly } from "./session";
import type { Direction } from "./walking";

const words = texts.editor;

/** Move steps and notes by what is said of each; what is inside of a step comes along. */
export function moveBy(document: WorkflowDocument, moves: ReadonlyMap<string, Position>): WorkflowDocument {
  const positions = new Map<string, Position>();
  const known = new Map(nodesOf(document).map((node) => [node.id, node.position]));
  for (const [id, by] of moves) {
    if (!known.has(id)) continue;
    for (const one of withMembers(document, [id])) {
      // What is moved by itself, too, is not moved twice.
      if (one !== id && moves.has(one)) continue;
      const at = known.get(one);
      positions.set(one, { x: (at?.x ?? 0) + by.x, y: (at?.y ?? 0) + by.y });
    }
  }
  let edited = moveNodes(document, positions);
  for (const note of notesOf(document)) {
    const by = moves.get(note.id);
    if (by === undefined || (by.x === 0 && by.y === 0)) continue;
    const position = { x: Math.round(note.position.x + by.x), y: Math.round(note.position.y + by.y) };
    edited = changeNote(edited, note.id, { position });
  }
  return edited;
}

export function nudge(session: EditorSession, direction: Direction): void {
  const by = {
    left: { x: -GRID, y: 0 },
    right: { x: GRID, y: 0 },
    up: { x: 0, y: -GRID },
    down: { x: 0, y: GRID },
  }[direction];
  const ids = [...chosenSteps(session).map((node) => node.id), ...chosen(session).notes];
  if (ids.length === 0 || isReadOnly(session)) return;
  const moves = new Map(ids.map((id) => [id, by]));
  session.editor.actions.edit(words.did.move, (document) => moveBy(document, moves));
}

/** What can be aligned: steps and notes as they are drawn, without what is inside of others of them. */
export function boxesOf(session: EditorSession): readonly Box[] {
  const { selection } = session.editor.getState();
  const inside = innerOf(documentOf(session), selection);
  const drawn = session.canvas.current?.drawn() ?? [];
  return drawn.filter((one) => one.kind !== "frame" && selection.has(one.id) && !inside.has(one.id));
}

function innerOf(document: WorkflowDocument, ids: ReadonlySet<string>): ReadonlySet<string> {
  const inner = new Set<string>();
  for (const id of ids) for (const one of withMembers(document, [id])) if (one !== id) inner.add(one);
  return inner;
}

function arrange(
  session: EditorSession,
  label: string,
  place: (boxes: readonly Box[]) => Map<string, Position>,
): void {
  const boxes = boxesOf(session);
  if (boxes.length < 2 || isReadOnly(session)) return;
  const corners = place(boxes);
  const moves = new Map<string, Position>();
  for (const { id, x, y } of boxes) {
    const at = corners.get(id);
    if (at !== undefined) moves.set(id, { x: at.x - x, y: at.y - y });
  }
  session.editor.actions.edit(label, (document) => moveBy(document, moves));
}

export function align(session: EditorSession, to: Alignment): void {
  arrange(session, words.did.align, (boxes) => aligned(boxes, to));
}

export function distribute(session: EditorSession, axis: Axis): void {
  arrange(session, words.did.distribute, (boxes) => distributed(boxes, axis));
}

function sizesOf(drawn: readonly Drawn[]): (node: NodeDefinition) => Size {
  const sizes = new Map(drawn.map((one) => [one.id, one]));
  return ({ id }) => sizes.get(id) ?? USUAL_SIZE;
}

/** Lay out all steps, or those that are selected if they are several, by the sizes that they have on the canvas. */
export async function tidy(session: EditorSession): Promise<void> {
  if (isReadOnly(session)) return;
  const { layoutChosen, layoutDocument } = await loadLayout();
  const sizeOf = sizesOf(session.canvas.current?.drawn() ?? []);
  const ids = new Set(chosenSteps(session).map((node) => node.id));
  session.editor.actions.edit(words.did.tidy, (document) =>
    moveNodes(
      document,
      ids.size > 1 ? layoutChosen(document, ids, sizeOf) : layoutDocument(document, sizeOf),
    ),
  );
  if (ids.size <= 1) session.canvas.current?.fit();
}
