/**
 * A JSON text as a tree that keeps its bytes: each part has its own text as it was written, with its spaces, the order
 * of its keys, repeated keys, and numbers that no JavaScript number can hold (`1.0`, `1e400`). An edit replaces the
 * text of what it changes; all else keeps its bytes, and parts that are not changed stay the same objects.
 */

export type Json = null | boolean | number | string | readonly Json[] | JsonFields;
export interface JsonFields {
  readonly [key: string]: Json;
}

export interface JsonScalar {
  readonly kind: "string" | "number" | "boolean" | "null";
  readonly text: string;
}

/** A part of an array or an object. Places are offsets in the text of the parent. */
export interface JsonChild {
  /** The key of a member, decoded; empty for an item. */
  readonly key: string;
  /** Where its key begins; for an item, where its value does. */
  readonly start: number;
  readonly valueStart: number;
  readonly value: JsonNode;
}

export interface JsonParent {
  readonly kind: "array" | "object";
  readonly text: string;
  readonly children: readonly JsonChild[];
}

export type JsonNode = JsonScalar | JsonParent;

/** The text is not JSON; `offset` says where. */
export class JsonTextError extends Error {
  readonly offset: number;

  constructor(message: string, offset: number) {
    super(message);
    this.offset = offset;
  }
}

export const MAX_DEPTH = 512;

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON strings have none of them
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const SPACE = /[ \t\n\r]*/y;
const WORDS = [
  ["true", "boolean"],
  ["false", "boolean"],
  ["null", "null"],
] as const;

class Reader {
  private at = 0;

  constructor(private readonly text: string) {}

  whole(): { node: JsonNode; start: number } {
    this.space();
    const start = this.at;
    const node = this.value(0);
    this.space();
    if (this.at < this.text.length) this.fail("there is more text after the document");
    return { node, start };
  }

  private value(depth: number): JsonNode {
    if (depth > MAX_DEPTH) this.fail("the document is nested too deeply");
    const first = this.text[this.at];
    if (first === "{") return this.parent("object", "}", depth);
    if (first === "[") return this.parent("array", "]", depth);
    if (first === '"') return { kind: "string", text: this.take(STRING, "a string is not closed") };
    for (const [word, kind] of WORDS) {
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length;
        return { kind, text: word };
      }
    }
    return { kind: "number", text: this.take(NUMBER, "this is not a JSON value") };
  }

  private parent(kind: "array" | "object", end: string, depth: number): JsonParent {
    const begin = this.at;
    const children: JsonChild[] = [];
    this.at += 1;
    this.space();
    if (this.text[this.at] !== end) {
      for (;;) {
        children.push(this.child(kind, begin, depth));
        this.space();
        if (this.text[this.at] !== ",") break;
        this.at += 1;
        this.space();
      }
    }
    if (this.text[this.at] !== end) this.fail(`a comma or ${end} is missing`);
    this.at += 1;
    return { kind, text: this.text.slice(begin, this.at), children };
  }

  private child(kind: "array" | "object", begin: number, depth: number): JsonChild {
    const start = this.at - begin;
    let key = "";
    if (kind === "object") {
      key = JSON.parse(this.take(STRING, "a key must be a string")) as string;
      this.space();
      if (this.text[this.at] !== ":") this.fail("a colon is missing");
      this.at += 1;
      this.space();
    }
    const valueStart = this.at - begin;
    return { key, start, valueStart, value: this.value(depth + 1) };
  }

  private take(pattern: RegExp, message: string): string {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found === null) this.fail(message);
    this.at += found[0].length;
    return found[0];
  }

  private space(): void {
    SPACE.lastIndex = this.at;
    this.at += SPACE.exec(this.text)?.[0].length ?? 0;
  }

  private fail(message: string): never {
    throw new JsonTextError(message, this.at);
  }
}

/** The tree of a text, and where in the text it begins (spaces may be around it). */
export function parseText(text: string): { node: JsonNode; start: number } {
  return new Reader(text).whole();
}

export function parseNode(text: string): JsonNode {
  return parseText(text).node;
}

export function isParent(node: JsonNode | undefined): node is JsonParent {
  return node !== undefined && (node.kind === "array" || node.kind === "object");
}

const values = new WeakMap<JsonNode, Json>();

/**
 * The plain value. The same node gives the same object each time, so that what was not edited can be compared by
 * identity. Of a repeated key the last one counts, as for the scheduler.
 */
export function plainOf(node: JsonNode): Json {
  if (!isParent(node)) return JSON.parse(node.text) as Json;
  const known = values.get(node);
  if (known !== undefined) return known;
  const made = node.kind === "array" ? node.children.map((child) => plainOf(child.value)) : fieldsOf(node);
  values.set(node, made);
  return made;
}

function fieldsOf(node: JsonParent): JsonFields {
  const fields: Record<string, Json> = {};
  for (const child of node.children) {
    // A plain assignment to `__proto__` would change the object instead of its fields.
    Object.defineProperty(fields, child.key, {
      value: plainOf(child.value),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return fields;
}

export type JsonPath = readonly (string | number)[];

/** Where a child is in its parent; -1 if it is not there. Of a repeated key the last one. */
export function placeOf(node: JsonParent, step: string | number): number {
  if (node.kind === "array") {
    const place = typeof step === "number" ? step : /^[0-9]+$/.test(step) ? Number(step) : -1;
    return place >= 0 && place < node.children.length ? place : -1;
  }
  return node.children.findLastIndex((child) => child.key === String(step));
}

/** Where the value at a path is in the text of the root; of what is not there, the nearest that is around it. */
export function spanAt(root: JsonNode, path: JsonPath): { readonly from: number; readonly to: number } {
  let here = root;
  let from = 0;
  for (const step of path) {
    const child = isParent(here) ? here.children[placeOf(here, step)] : undefined;
    if (child === undefined) break;
    from += child.valueStart;
    here = child.value;
  }
  return { from, to: from + here.text.length };
}

/** What is at a path; undefined if nothing is. */
export function nodeAt(root: JsonNode, path: JsonPath): JsonNode | undefined {
  let here: JsonNode | undefined = root;
  for (const step of path) {
    if (!isParent(here)) return undefined;
    here = here.children[placeOf(here, step)]?.value;
  }
  return here;
}
