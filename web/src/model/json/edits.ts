/** Edits of a JSON tree: each gives a new tree, in which all but the edited place has the bytes that it had. */

import { type JsonStyle, lead, print, separator } from "./printing";
import {
  isParent,
  type Json,
  type JsonChild,
  type JsonFields,
  type JsonNode,
  type JsonParent,
  type JsonPath,
  nodeAt,
  parseNode,
  placeOf,
  plainOf,
} from "./tree";

/** A new value, or a part of a tree, whose text is taken as it is. */
export type NewJson = { readonly value: Json } | { readonly node: JsonNode };

function made(given: NewJson, style: JsonStyle, depth: number): JsonNode {
  return "node" in given ? given.node : parseNode(print(given.value, style, depth));
}

const endOf = (child: JsonChild): number => child.valueStart + child.value.text.length;

function moved(children: readonly JsonChild[], by: number): JsonChild[] {
  if (by === 0) return [...children];
  return children.map((child) => ({ ...child, start: child.start + by, valueStart: child.valueStart + by }));
}

function replaceChild(parent: JsonParent, place: number, node: JsonNode): JsonParent {
  const child = parent.children[place];
  if (child === undefined || child.value === node) return parent;
  const { text, children } = parent;
  const by = node.text.length - child.value.text.length;
  return {
    kind: parent.kind,
    text: text.slice(0, child.valueStart) + node.text + text.slice(endOf(child)),
    children: [
      ...children.slice(0, place),
      { ...child, value: node },
      ...moved(children.slice(place + 1), by),
    ],
  };
}

/** Put a child before the one at `place`, written as its neighbours are. */
function insertChild(
  parent: JsonParent,
  place: number,
  key: string,
  node: JsonNode,
  style: JsonStyle,
  depth: number,
): JsonParent {
  const { kind, text, children } = parent;
  const [first, second] = children;
  const colon = kind === "array" ? "" : first ? colonOf(text, first) : style.isSpaced ? ": " : ":";
  const prefix = kind === "array" ? "" : JSON.stringify(key) + colon;
  const own = prefix + node.text;
  const put = (start: number): JsonChild => ({ key, start, valueStart: start + prefix.length, value: node });
  if (first === undefined) {
    const opened = text[0] + lead(style, depth);
    const whole = opened + own + lead(style, depth - 1) + text.at(-1);
    return { kind, text: whole, children: [put(opened.length)] };
  }
  const between = second ? text.slice(endOf(first), second.start) : beside(text, first, style);
  const before = children[Math.min(place, children.length) - 1];
  if (before !== undefined) {
    const at = endOf(before);
    const by = between.length + own.length;
    return {
      kind,
      text: text.slice(0, at) + between + own + text.slice(at),
      children: [...children.slice(0, place), put(at + between.length), ...moved(children.slice(place), by)],
    };
  }
  return {
    kind,
    text: text.slice(0, first.start) + own + between + text.slice(first.start),
    children: [put(first.start), ...moved(children, own.length + between.length)],
  };
}

function colonOf(text: string, child: JsonChild): string {
  const found = /^"(?:[^"\\]|\\.)*"/s.exec(text.slice(child.start, child.valueStart));
  return text.slice(child.start + (found?.[0].length ?? 0), child.valueStart);
}

/** What stands between two children, where there is only one yet. */
function beside(text: string, only: JsonChild, style: JsonStyle): string {
  const before = text.slice(1, only.start);
  return before.includes("\n") ? `,${before}` : separator({ ...style, indent: "" }, 0);
}

function removeChild(parent: JsonParent, place: number): JsonParent {
  const { kind, text, children } = parent;
  const child = children[place];
  if (child === undefined) return parent;
  if (children.length === 1) return { kind, text: `${text[0]}${text.at(-1)}`, children: [] };
  const before = children[place - 1];
  const next = children[place + 1];
  const from = before ? endOf(before) : child.start;
  const to = before ? endOf(child) : (next?.start ?? endOf(child));
  return {
    kind,
    text: text.slice(0, from) + text.slice(to),
    children: [...children.slice(0, place), ...moved(children.slice(place + 1), from - to)],
  };
}

/** Replace several children in one pass: for a list of thousands, one by one would take its length for each. */
function replaceMany(parent: JsonParent, nodes: ReadonlyMap<number, JsonNode>): JsonParent {
  const pieces: string[] = [];
  const children: JsonChild[] = [];
  let [from, by] = [0, 0];
  parent.children.forEach((child, place) => {
    const node = nodes.get(place) ?? child.value;
    pieces.push(parent.text.slice(from, child.valueStart), node.text);
    from = endOf(child);
    children.push({ ...child, start: child.start + by, valueStart: child.valueStart + by, value: node });
    by += node.text.length - child.value.text.length;
  });
  return { kind: parent.kind, text: pieces.join("") + parent.text.slice(from), children };
}

/** Remove several children in one pass. The bytes are those that removing them one by one gives. */
function removeMany(parent: JsonParent, gone: ReadonlySet<number>): JsonParent {
  const { kind, text } = parent;
  const first = parent.children.findIndex((_, place) => !gone.has(place));
  const opening = parent.children[0];
  const kept = parent.children[first];
  if (kept === undefined || opening === undefined)
    return { kind, text: `${text[0]}${text.at(-1)}`, children: [] };
  const pieces = [text.slice(0, opening.start)];
  const children: JsonChild[] = [];
  let [from, by] = [kept.start, kept.start - opening.start];
  parent.children.forEach((child, place) => {
    if (place < first) return;
    if (!gone.has(place)) {
      children.push({ ...child, start: child.start - by, valueStart: child.valueStart - by });
      return;
    }
    const before = parent.children[place - 1] ?? child;
    pieces.push(text.slice(from, endOf(before)));
    from = endOf(child);
    by += from - endOf(before);
  });
  return { kind, text: pieces.join("") + text.slice(from), children };
}

/** Edit the items of a list at a path: what `edit` gives takes the place of each, and null removes it. */
export function editItems(
  root: JsonNode,
  path: JsonPath,
  edit: (item: JsonNode, place: number) => JsonNode | null,
): JsonNode {
  const list = nodeAt(root, path);
  if (!isParent(list) || list.kind !== "array") return root;
  const changed = new Map<number, JsonNode>();
  const gone = new Set<number>();
  list.children.forEach((child, place) => {
    const edited = edit(child.value, place);
    if (edited === null) gone.add(place);
    else if (edited !== child.value) changed.set(place, edited);
  });
  if (changed.size === 0 && gone.size === 0) return root;
  const replaced = changed.size > 0 ? replaceMany(list, changed) : list;
  return withNode(root, path, gone.size > 0 ? removeMany(replaced, gone) : replaced);
}

/** Put a node in the place of the one at a path that is there. */
function withNode(root: JsonNode, path: JsonPath, node: JsonNode): JsonNode {
  const [step, ...rest] = path;
  if (step === undefined || !isParent(root)) return node;
  const place = placeOf(root, step);
  const child = root.children[place];
  return child === undefined ? root : replaceChild(root, place, withNode(child.value, rest, node));
}

/** Set what is at a path. Objects that are missing on the way are made; a list is never made longer than by one. */
export function setIn(root: JsonNode, path: JsonPath, given: NewJson, style: JsonStyle, depth = 0): JsonNode {
  const [step, ...rest] = path;
  if (step === undefined) return made(given, style, depth);
  const parent: JsonParent = isParent(root) ? root : { kind: "object", text: "{}", children: [] };
  const place = placeOf(parent, step);
  const child = parent.children[place];
  if (child !== undefined)
    return replaceChild(parent, place, setIn(child.value, rest, given, style, depth + 1));
  const below: JsonNode = { kind: "object", text: "{}", children: [] };
  const node =
    rest.length === 0 ? made(given, style, depth + 1) : setIn(below, rest, given, style, depth + 1);
  return insertChild(parent, parent.children.length, String(step), node, style, depth + 1);
}

/** Remove what is at a path: of a repeated key, all of them. Nothing there: nothing changes. */
export function removeIn(root: JsonNode, path: JsonPath): JsonNode {
  const [step, ...rest] = path;
  if (step === undefined || !isParent(root)) return root;
  const place = placeOf(root, step);
  const child = root.children[place];
  if (child === undefined) return root;
  if (rest.length > 0) return replaceChild(root, place, removeIn(child.value, rest));
  const removed = removeChild(root, place);
  return root.kind === "object" ? removeIn(removed, [step]) : removed;
}

/** Put an item into the list at a path; the list is made if it is missing. */
export function insertIn(
  root: JsonNode,
  path: JsonPath,
  place: number,
  given: NewJson,
  style: JsonStyle,
  depth = 0,
): JsonNode {
  const [step, ...rest] = path;
  if (step === undefined) {
    const list: JsonParent =
      isParent(root) && root.kind === "array" ? root : { kind: "array", text: "[]", children: [] };
    return insertChild(list, place, "", made(given, style, depth + 1), style, depth + 1);
  }
  const parent: JsonParent = isParent(root) ? root : { kind: "object", text: "{}", children: [] };
  const found = placeOf(parent, step);
  const child = parent.children[found];
  const below: JsonNode = child?.value ?? {
    kind: rest.length === 0 ? "array" : "object",
    text: rest.length === 0 ? "[]" : "{}",
    children: [],
  };
  const node = insertIn(below, rest, place, given, style, depth + 1);
  if (child !== undefined) return replaceChild(parent, found, node);
  return insertChild(parent, parent.children.length, String(step), node, style, depth + 1);
}

/**
 * The tree of a value, made from one that is there: members and items that are equal keep their bytes, their order and
 * the spaces around them. A number that no JavaScript number can hold is equal to the one that it was read as.
 */
export function mergedWith(node: JsonNode, value: Json, style: JsonStyle, depth: number): JsonNode {
  if (isParent(node) && value !== null && typeof value === "object") {
    if (node.kind === "array" && Array.isArray(value)) return mergedList(node, value, style, depth);
    if (node.kind === "object" && !Array.isArray(value))
      return mergedFields(node, value as JsonFields, style, depth);
  }
  if (!isParent(node) && Object.is(plainOf(node), value)) return node;
  return made({ value }, style, depth);
}

function mergedFields(node: JsonParent, value: JsonFields, style: JsonStyle, depth: number): JsonNode {
  let merged: JsonNode = node;
  for (const child of node.children) {
    if (!Object.hasOwn(value, child.key)) merged = removeIn(merged, [child.key]);
  }
  for (const [key, item] of Object.entries(value)) {
    const place = isParent(merged) ? placeOf(merged, key) : -1;
    const child = isParent(merged) ? merged.children[place] : undefined;
    merged =
      child === undefined
        ? setIn(merged, [key], { value: item }, style, depth)
        : replaceChild(merged as JsonParent, place, mergedWith(child.value, item, style, depth + 1));
  }
  return merged;
}

function mergedList(node: JsonParent, value: readonly Json[], style: JsonStyle, depth: number): JsonNode {
  let merged = node;
  for (let place = node.children.length - 1; place >= value.length; place -= 1)
    merged = removeChild(merged, place);
  value.forEach((item, place) => {
    const child = merged.children[place];
    merged =
      child === undefined
        ? insertChild(merged, place, "", made({ value: item }, style, depth + 1), style, depth + 1)
        : replaceChild(merged, place, mergedWith(child.value, item, style, depth + 1));
  });
  return merged;
}
