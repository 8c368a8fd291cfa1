/** What somebody does with what is on the canvas. Each is one entry of the history. */

import type { Connection } from "@xyflow/react";
import { edgeId } from "../canvas/flow";
import type { Drawn, Move } from "../canvas/gestures";
import { copyNodes, duplicateNodes, pasteNodes } from "../model/clipboard";
import type { Position } from "../model/definition";
import {
  EditError,
  edgesOf,
  groupsOf,
  nodesOf,
  notesOf,
  openDocument,
  type WorkflowDocument,
} from "../model/document";
import { changeGroup, changeNote, removeGroup, removeNote } from "../model/edits/canvas";
import { connect, disconnect } from "../model/edits/edges";
import {
  addMiddleware,
  moveNodes,
  removeNodes,
  renameNode,
  setDisabled,
  setParent,
} from "../model/edits/nodes";
import { isParent, JsonTextError, nodeAt } from "../model/json/tree";
import { endAt, Wiring } from "../model/wiring";
import { texts } from "../texts";
import { containerAt, newId } from "./adding";
import { chosen } from "./selection";
import { documentOf, type EditorSession, isReadOnly, notify } from "./session";
import { type Direction, neighbourOf, reachOf } from "./walking";

const words = texts.editor;

export function deleteChosen(session: EditorSession, heals: boolean): void {
  const { nodes, notes, groups, edges } = chosen(session);
  const count = nodes.length + notes.length + groups.length + edges.size;
  if (count === 0 || isReadOnly(session)) return;
  const label =
    nodes.length === 1 && count === 1
      ? words.did.deleteStep(nodes[0]?.label ?? nodes[0]?.type ?? "")
      : groups.length === count
        ? words.did.ungroup
        : words.did.delete(count);
  session.editor.actions.edit(label, (before) => {
    const wiring = new Wiring(before, session.catalog());
    let document = disconnect(before, edges);
    // Its steps stay: a group is only a frame around them.
    for (const group of groups) document = removeGroup(document, group.id);
    document = removeNodes(
      document,
      nodes.map((node) => node.id),
      heals ? { heals: (source, target) => wiring.check(source, target).fits } : {},
    );
    for (const note of notes) document = removeNote(document, note);
    return document;
  });
  session.editor.actions.select([]);
}

export function toggleDisabled(session: EditorSession): void {
  const { nodes } = chosen(session);
  if (nodes.length === 0) return;
  const isDisabled = !nodes.every((node) => node.disabled === true);
  session.editor.actions.edit(isDisabled ? words.did.disable : words.did.enable, (document) =>
    setDisabled(
      document,
      nodes.map((node) => node.id),
      isDisabled,
    ),
  );
}

export function startNaming(session: EditorSession): void {
  const { nodes, notes, groups } = chosen(session);
  const id = nodes[0]?.id ?? notes[0] ?? groups[0]?.id;
  if (id !== undefined && nodes.length + notes.length + groups.length === 1 && !isReadOnly(session))
    session.decor.setState({ naming: id });
}

export function rename(session: EditorSession, id: string, label: string | null): void {
  session.decor.setState({ naming: null });
  const isGroup = groupsOf(documentOf(session)).some((group) => group.id === id);
  if (label !== null)
    session.editor.actions.edit(words.did.rename, (document) =>
      isGroup ? changeGroup(document, id, { label }) : renameNode(document, id, label),
    );
  session.canvas.current?.focus();
}

export function writeNote(session: EditorSession, id: string, text: string | null): void {
  session.decor.setState({ naming: null });
  if (text === null || !notesOf(documentOf(session)).some((note) => note.id === id)) return;
  session.editor.actions.edit(words.did.editNote, (document) => changeNote(document, id, { text }));
}

export function duplicateChosen(session: EditorSession): void {
  const ids = chosen(session).nodes.map((node) => node.id);
  if (ids.length === 0 || isReadOnly(session)) return;
  let made: readonly string[] = [];
  session.editor.actions.edit(words.did.duplicate(ids.length), (document) => {
    const pasted = duplicateNodes(document, ids, { newId, offset: { x: 32, y: 32 } });
    made = pasted.ids;
    return pasted.document;
  });
  session.editor.actions.select(made);
}

export function copyChosen(session: EditorSession): string | null {
  const ids = chosen(session).nodes.map((node) => node.id);
  if (ids.length === 0) return null;
  notify(session, words.notices.copied(ids.length));
  return copyNodes(documentOf(session), ids);
}

/** Steps of this editor, or a whole workflow, whose steps are taken. False if the text is neither. */
export function pasteText(session: EditorSession, text: string): boolean {
  if (isReadOnly(session)) return false;
  let made: readonly string[] = [];
  const given = asSteps(text);
  if (given === null) return false;
  session.editor.actions.edit(words.did.paste, (document) => {
    const pasted = pasteNodes(document, given, { newId, offset: { x: 48, y: 48 } });
    made = pasted?.ids ?? [];
    return pasted?.document ?? document;
  });
  if (made.length === 0) return false;
  session.editor.actions.select(made);
  return true;
}

function asSteps(text: string): string | null {
  if (text.includes('"astraflow.nodes"')) return text;
  try {
    const document = openDocument(text);
    if (nodesOf(document).length === 0) return null;
    const list = (name: string): string => {
      const found = nodeAt(document.root, [name]);
      return isParent(found) ? found.text : "[]";
    };
    return `{"kind":"astraflow.nodes","nodes":${list("nodes")},"edges":${list("edges")}}`;
  } catch (error) {
    if (error instanceof JsonTextError) return null;
    throw error;
  }
}

export function connectBy(session: EditorSession, connection: Connection): void {
  const source = endAt(connection.source, connection.sourceHandle ?? "done");
  const target = endAt(connection.target, connection.targetHandle ?? "trigger");
  session.editor.actions.edit(words.did.connect, (document) => {
    const verdict = new Wiring(document, session.catalog()).check(source, target);
    return verdict.fits ? connect(document, { source, target }, { replaces: verdict.replaces }) : document;
  });
}

/** An end of an edge was taken elsewhere; null: nowhere, and the edge goes. */
export function reconnect(session: EditorSession, id: string, connection: Connection | null): void {
  const { actions } = session.editor;
  const free = (document: WorkflowDocument): WorkflowDocument =>
    disconnect(
      document,
      new Set(edgesOf(document).flatMap((edge, place) => (edgeId(edge) === id ? [place] : []))),
    );
  if (connection === null) {
    actions.edit(words.did.disconnect, free);
    return;
  }
  actions.begin(words.did.reconnect);
  actions.edit(words.did.reconnect, free);
  connectBy(session, connection);
  actions.commit();
}

const centreOf = (one: Drawn): Position => ({ x: one.x + one.width / 2, y: one.y + one.height / 2 });

/** A drag has ended: positions, and what it was dropped on. */
export function moved(session: EditorSession, move: Move): void {
  const { actions } = session.editor;
  actions.begin(words.did.move);
  actions.edit(words.did.move, (before) => {
    let document = moveNodes(before, move.positions);
    for (const note of notesOf(before)) {
      const at = move.positions.get(note.id);
      if (at !== undefined) document = changeNote(document, note.id, { position: { x: at.x, y: at.y } });
    }
    return document;
  });
  for (const id of move.ids) dropped(session, id, move);
  actions.commit();
}

function dropped(session: EditorSession, id: string, move: Move): void {
  const document = documentOf(session);
  const node = nodesOf(document).find((one) => one.id === id);
  const here = move.drawn.find((one) => one.id === id);
  if (node === undefined || here === undefined) return;
  const at = centreOf(here);
  const type = session.catalog().find(node.type, node.package?.name, node.package?.version);
  if (typeof type === "object" && type.middleware) {
    const host = move.drawn.find(
      (one) =>
        one.kind === "step" &&
        one.id !== id &&
        at.x > one.x &&
        at.x < one.x + one.width &&
        at.y > one.y &&
        at.y < one.y + one.height,
    );
    const chain = nodesOf(document).find((one) => one.id === host?.id)?.middlewares?.length ?? 0;
    if (host !== undefined)
      session.editor.actions.edit(words.did.wrap, (before) => addMiddleware(before, host.id, id, chain));
    return;
  }
  const parent = containerAt(move.drawn, at, new Set(move.ids));
  if (parent === (node.parent ?? null) || (node.parent != null && move.ids.includes(node.parent))) return;
  try {
    session.editor.actions.edit(words.did.move, (before) => setParent(before, [id], parent));
  } catch (error) {
    if (!(error instanceof EditError)) throw error;
  }
}

export function walk(session: EditorSession, direction: Direction): void {
  const from = chosen(session).nodes.at(-1)?.id ?? null;
  const next = neighbourOf(documentOf(session), from, direction);
  if (next === null) return;
  session.editor.actions.select([next]);
  session.canvas.current?.reveal(next);
}

export function selectReach(session: EditorSession, to: "upstream" | "downstream"): void {
  const ids = chosen(session).nodes.map((node) => node.id);
  session.editor.actions.select(reachOf(documentOf(session), ids, to));
}

export function selectAll(session: EditorSession): void {
  const document = documentOf(session);
  session.editor.actions.select([
    ...nodesOf(document).map((node) => node.id),
    ...notesOf(document).map((note) => note.id),
    ...groupsOf(document).map((group) => group.id),
  ]);
}
