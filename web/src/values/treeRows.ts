/** A JSON value as the rows of a tree: only what is open is walked, so that a large value costs what is shown of it. */

import { isFields, referenceOf, secretOf } from "./references";

export interface TreeRow {
  /** A JSON pointer: the row's key. */
  readonly pointer: string;
  /** As an expression names it: `rows[3].name`. */
  readonly path: string;
  readonly name: string | null;
  readonly depth: number;
  readonly value: unknown;
  readonly kind: "object" | "array" | "leaf" | "more";
  /** Members of an object or a list; what is left out for `more`. */
  readonly count: number;
  readonly isOpen: boolean;
}

/** Members of one object or list that are shown at once. */
export const PAGE = 200;

export interface TreeOptions {
  readonly open: ReadonlySet<string>;
  /** How many pages of a large list are shown, by pointer. */
  readonly pages: ReadonlyMap<string, number>;
  readonly search: string;
}

const NAME = /^[A-Za-z_]\w*$/;
const escaped = (key: string): string => key.replaceAll("~", "~0").replaceAll("/", "~1");
export const pathTo = (path: string, key: string | number): string => {
  if (typeof key === "number") return `${path}[${key}]`;
  if (!NAME.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path === "" ? key : `${path}.${key}`;
};

export function treeRows(value: unknown, options: TreeOptions): readonly TreeRow[] {
  const rows: TreeRow[] = [];
  const wanted = options.search === "" ? null : matches(value, options.search.toLowerCase());
  walk(value, { pointer: "", path: "", name: null, depth: 0 }, options, wanted, rows);
  return rows;
}

interface Place {
  readonly pointer: string;
  readonly path: string;
  readonly name: string | null;
  readonly depth: number;
}

function walk(
  value: unknown,
  place: Place,
  options: TreeOptions,
  wanted: ReadonlySet<string> | null,
  rows: TreeRow[],
): void {
  if (wanted !== null && !wanted.has(place.pointer)) return;
  const kind = kindOf(value);
  if (kind === "leaf") {
    rows.push({ ...place, value, kind, count: 0, isOpen: false });
    return;
  }
  const members: readonly [string | number, unknown][] =
    kind === "array"
      ? (value as unknown[]).map((one, index) => [index, one])
      : Object.entries(value as object);
  const isOpen = wanted !== null || options.open.has(place.pointer);
  rows.push({ ...place, value, kind, count: members.length, isOpen });
  if (!isOpen) return;
  const shown = wanted === null ? PAGE * (options.pages.get(place.pointer) ?? 1) : members.length;
  for (const [key, member] of members.slice(0, shown)) {
    const at = {
      pointer: `${place.pointer}/${escaped(String(key))}`,
      path: pathTo(place.path, key),
      name: String(key),
      depth: place.depth + 1,
    };
    walk(member, at, options, wanted, rows);
  }
  const left = members.length - shown;
  if (left > 0)
    rows.push({
      ...place,
      depth: place.depth + 1,
      name: null,
      value: null,
      kind: "more",
      count: left,
      isOpen: false,
    });
}

const kindOf = (value: unknown): "object" | "array" | "leaf" => {
  if (Array.isArray(value)) return "array";
  if (!isFields(value) || secretOf(value) !== null || referenceOf(value) !== null) return "leaf";
  return "object";
};

/** Found places beyond this are not shown: nobody reads them. */
const MAX_FOUND = 500;

/** The pointers of what a search finds, with all that is around it. */
function matches(value: unknown, text: string): ReadonlySet<string> {
  const found = new Set<string>();
  let count = 0;
  const look = (one: unknown, pointer: string, name: string | null): boolean => {
    if (count >= MAX_FOUND) return false;
    let isHit = name?.toLowerCase().includes(text) ?? false;
    const kind = kindOf(one);
    if (kind === "leaf")
      isHit ||= String(typeof one === "object" ? JSON.stringify(one) : one)
        .toLowerCase()
        .includes(text);
    if (isHit) count += 1;
    if (kind === "array")
      for (const [index, member] of (one as unknown[]).entries())
        if (look(member, `${pointer}/${index}`, null)) isHit = true;
    if (kind === "object")
      for (const [key, member] of Object.entries(one as object))
        if (look(member, `${pointer}/${escaped(key)}`, key)) isHit = true;
    if (isHit) found.add(pointer);
    return isHit;
  };
  look(value, "", null);
  return found;
}
