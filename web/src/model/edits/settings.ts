/** Edits of settings: of a node, an edge, or the workflow itself. */

import {
  arrangeAt,
  EditError,
  placeOfNode,
  removeAt,
  setAt,
  valueAt,
  type WorkflowDocument,
} from "../document";
import type { Json, JsonFields, JsonPath } from "../json/tree";

/**
 * Set a value at a path, or remove it. Objects that were made only to hold it go with it, down to `keep` steps of the
 * path, so that a setting that came and went leaves no trace.
 */
export function setSetting(
  document: WorkflowDocument,
  path: JsonPath,
  value: Json | undefined,
  keep: number,
): WorkflowDocument {
  if (value !== undefined) return setAt(document, path, value);
  let edited = removeAt(document, path);
  for (let depth = path.length - 1; depth > keep; depth -= 1) {
    // A row of a list stays, also without members.
    if (Array.isArray(valueAt(edited, path.slice(0, depth - 1)))) break;
    const holder = valueAt(edited, path.slice(0, depth));
    const isEmpty =
      holder !== null &&
      typeof holder === "object" &&
      !Array.isArray(holder) &&
      Object.keys(holder).length === 0;
    if (!isEmpty) break;
    edited = removeAt(edited, path.slice(0, depth));
  }
  return edited;
}

export const nodePath = (document: WorkflowDocument, id: string): JsonPath => [
  "nodes",
  placeOfNode(document, id),
];

const fieldsAt = (document: WorkflowDocument, path: JsonPath): JsonFields => {
  const value = valueAt(document, path);
  return value !== null && typeof value === "object" && !Array.isArray(value) ? (value as JsonFields) : {};
};

/** Give a member another name; its place and its bytes stay. Throws EditError if the name is taken. */
export function renameMember(
  document: WorkflowDocument,
  path: JsonPath,
  from: string,
  to: string,
): WorkflowDocument {
  const fields = fieldsAt(document, path);
  if (from === to || !Object.hasOwn(fields, from)) return document;
  if (Object.hasOwn(fields, to)) throw new EditError(`there is one with this name already: ${to}`);
  const order = Object.keys(fields).map((name) => [name, name === from ? to : name] as const);
  return arrangeAt(document, path, order);
}

/** Move a member of an object one place or more. */
export function moveMember(
  document: WorkflowDocument,
  path: JsonPath,
  name: string,
  place: number,
): WorkflowDocument {
  const names = Object.keys(fieldsAt(document, path));
  const from = names.indexOf(name);
  const to = Math.min(Math.max(place, 0), names.length - 1);
  if (from < 0 || from === to) return document;
  names.splice(from, 1);
  names.splice(to, 0, name);
  return arrangeAt(
    document,
    path,
    names.map((one) => [one, one] as const),
  );
}

/** A name that is not taken: `input`, `input_2` and so on. */
export function freeName(taken: Iterable<string>, base: string): string {
  const names = new Set(taken);
  if (!names.has(base)) return base;
  for (let number = 2; ; number += 1) if (!names.has(`${base}_${number}`)) return `${base}_${number}`;
}
