/**
 * A workflow that is open in the editor. It is never changed: an edit gives another one, which shares all parts that
 * were not edited, down to their bytes.
 */

import type { CanvasGroup, CanvasNote, EdgeDefinition, NodeDefinition } from "./definition";
import { EDITOR_KEY } from "./definition";
import { editItems, insertIn, mergedWith, type NewJson, removeIn, setIn } from "./json/edits";
import { indented } from "./json/lines";
import { type JsonStyle, styleOf } from "./json/printing";
import {
  type Json,
  type JsonFields,
  type JsonNode,
  type JsonPath,
  nodeAt,
  parseNode,
  parseText,
  plainOf,
} from "./json/tree";

export interface WorkflowDocument {
  readonly root: JsonNode;
  /** What is before and after the document in its text: spaces, and a line end. */
  readonly before: string;
  readonly after: string;
  readonly style: JsonStyle;
}

/** An edit that cannot be done: what it is about is not there. */
export class EditError extends Error {}

/** Throws JsonTextError if the text is not JSON. */
export function openDocument(text: string): WorkflowDocument {
  const { node, start } = parseText(text);
  return {
    root: node,
    before: text.slice(0, start),
    after: text.slice(start + node.text.length),
    style: styleOf(node),
  };
}

export function textOf(document: WorkflowDocument): string {
  return document.before + document.root.text + document.after;
}

/** A part of the document as a plain value: the same object as long as that part is not edited. */
export function valueAt(document: WorkflowDocument, path: JsonPath): Json | undefined {
  const node = nodeAt(document.root, path);
  return node === undefined ? undefined : plainOf(node);
}

/** Why a document cannot be drawn, and where. */
export interface DrawingProblem {
  readonly path: JsonPath;
  readonly message: string;
}

const drawings = new WeakMap<JsonNode, DrawingProblem | null>();

/**
 * What keeps the document from being shown on a canvas: its nodes and edges are there and have names. Whatever else may
 * be wrong with it, the edits work; a document that is not even that is edited as text.
 */
export function drawingProblem({ root }: WorkflowDocument): DrawingProblem | null {
  const known = drawings.get(root);
  if (known !== undefined) return known;
  const found = problemIn(plainOf(root));
  drawings.set(root, found);
  return found;
}

export const isDrawable = (document: WorkflowDocument): boolean => drawingProblem(document) === null;

function problemIn(root: Json): DrawingProblem | null {
  if (!isFields(root)) return { path: [], message: "A workflow is an object" };
  for (const list of ["nodes", "edges"] as const) {
    const items = root[list];
    if (items === undefined) continue;
    if (!Array.isArray(items)) return { path: [list], message: `\`${list}\` is no list` };
    for (const [place, item] of items.entries()) {
      const found = list === "nodes" ? nodeProblem(item as Json) : edgeProblem(item as Json);
      if (found !== null) return { path: [list, place, ...found.path], message: found.message };
    }
  }
  return null;
}

function nodeProblem(node: Json): DrawingProblem | null {
  if (!isFields(node)) return { path: [], message: "A node is an object" };
  for (const field of ["id", "type"])
    if (typeof node[field] !== "string") return misfit(node, field, `A node needs \`${field}\`, as a text`);
  return null;
}

function edgeProblem(edge: Json): DrawingProblem | null {
  if (!isFields(edge)) return { path: [], message: "An edge is an object" };
  for (const side of ["source", "target"]) {
    const end = edge[side];
    if (!isFields(end) || typeof end.node !== "string")
      return misfit(edge, side, `An edge needs \`${side}\` with the id of a node`);
  }
  return null;
}

/** At the field if it is there, else at what lacks it. */
const misfit = (holder: JsonFields, field: string, message: string): DrawingProblem => ({
  path: Object.hasOwn(holder, field) ? [field] : [],
  message,
});

const isFields = (value: Json | undefined): value is JsonFields =>
  value !== null && typeof value === "object" && !Array.isArray(value);

function listAt<T>(document: WorkflowDocument, path: JsonPath): readonly T[] {
  const value = valueAt(document, path);
  return Array.isArray(value) ? (value as unknown as readonly T[]) : [];
}

/** The nodes as they are written: but for their ids and types they may lack anything. None if it cannot be drawn. */
export function nodesOf(document: WorkflowDocument): readonly NodeDefinition[] {
  return isDrawable(document) ? listAt<NodeDefinition>(document, ["nodes"]) : [];
}

export function edgesOf(document: WorkflowDocument): readonly EdgeDefinition[] {
  return isDrawable(document) ? listAt<EdgeDefinition>(document, ["edges"]) : [];
}

export function notesOf(document: WorkflowDocument): readonly CanvasNote[] {
  return listAt<CanvasNote>(document, [EDITOR_KEY, "notes"]);
}

export function groupsOf(document: WorkflowDocument): readonly CanvasGroup[] {
  return listAt<CanvasGroup>(document, [EDITOR_KEY, "groups"]);
}

/** The place of a node in the list. Throws EditError if there is no such node. */
export function placeOfNode(document: WorkflowDocument, id: string): number {
  const place = nodesOf(document).findIndex((node) => node?.id === id);
  if (place < 0) throw new EditError(`there is no node with this id: ${id}`);
  return place;
}

export function nodeOf(document: WorkflowDocument, id: string): NodeDefinition {
  return nodesOf(document)[placeOfNode(document, id)] as NodeDefinition;
}

function withRoot(document: WorkflowDocument, root: JsonNode): WorkflowDocument {
  return root === document.root ? document : { ...document, root };
}

/** Set a value. What of it is there already keeps the bytes that it has. */
export function setAt(document: WorkflowDocument, path: JsonPath, value: Json): WorkflowDocument {
  const known = nodeAt(document.root, path);
  if (known === undefined) return withRoot(document, setIn(document.root, path, { value }, document.style));
  const node = mergedWith(known, value, document.style, path.length);
  return node === known ? document : withRoot(document, setIn(document.root, path, { node }, document.style));
}

/** Set a value in the bytes that a person typed. Throws JsonTextError if they are not JSON. */
export function setTextAt(document: WorkflowDocument, path: JsonPath, text: string): WorkflowDocument {
  const node = parseNode(indented(text, document.style.indent, path.length));
  return nodeAt(document.root, path)?.text === node.text
    ? document
    : withRoot(document, setIn(document.root, path, { node }, document.style));
}

/** The bytes of a part; undefined if it is not there. */
export function textAt(document: WorkflowDocument, path: JsonPath): string | undefined {
  return nodeAt(document.root, path)?.text;
}

/** Put the members of an object into another order, or give them other names: their bytes stay. */
export function arrangeAt(
  document: WorkflowDocument,
  path: JsonPath,
  order: readonly (readonly [from: string, to: string])[],
): WorkflowDocument {
  let edited = withRoot(document, setIn(document.root, path, { value: {} }, document.style));
  for (const [from, to] of order) {
    const node = nodeAt(document.root, [...path, from]);
    if (node === undefined) continue;
    edited = withRoot(edited, setIn(edited.root, [...path, to], { node }, document.style));
  }
  return edited;
}

/** Move an item of a list. */
export function moveAt(
  document: WorkflowDocument,
  path: JsonPath,
  from: number,
  to: number,
): WorkflowDocument {
  const node = nodeAt(document.root, [...path, from]);
  if (node === undefined || from === to) return document;
  return insertAt(removeAt(document, [...path, from]), path, to, { node });
}

export function removeAt(document: WorkflowDocument, path: JsonPath): WorkflowDocument {
  return withRoot(document, removeIn(document.root, path));
}

export function insertAt(
  document: WorkflowDocument,
  path: JsonPath,
  place: number,
  given: NewJson,
): WorkflowDocument {
  return withRoot(document, insertIn(document.root, path, place, given, document.style));
}

export function appendAt(document: WorkflowDocument, path: JsonPath, given: NewJson): WorkflowDocument {
  return insertAt(document, path, listAt(document, path).length, given);
}

/** Remove those items of a list that are meant; a list that was not there stays so. */
export function removeWhere<T>(
  document: WorkflowDocument,
  path: JsonPath,
  isMeant: (item: T, place: number) => boolean,
): WorkflowDocument {
  const items = listAt<T>(document, path);
  return withRoot(
    document,
    editItems(document.root, path, (item, place) => (isMeant(items[place] as T, place) ? null : item)),
  );
}

/** Set a field of many items of a list at once; undefined leaves an item as it is. */
export function setInItems<T>(
  document: WorkflowDocument,
  path: JsonPath,
  field: string,
  valueFor: (item: T) => Json | undefined,
): WorkflowDocument {
  const items = listAt<T>(document, path);
  const depth = path.length + 1;
  return withRoot(
    document,
    editItems(document.root, path, (item, place) => {
      const value = valueFor(items[place] as T);
      if (value === undefined) return item;
      const known = nodeAt(item, [field]);
      if (known === undefined) return setIn(item, [field], { value }, document.style, depth);
      const node = mergedWith(known, value, document.style, depth + 1);
      return node === known ? item : setIn(item, [field], { node }, document.style, depth);
    }),
  );
}
