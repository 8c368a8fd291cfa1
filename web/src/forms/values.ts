/** Plain values: read, set and remove at a path. What is not changed stays the same object. */

import { readPath } from "../model/bindings";
import type { Json, JsonFields } from "../model/json/tree";
import { pointerToken } from "../model/validation/problems";
import { isFields } from "./schema";

export const valueIn = (value: Json | undefined, path: readonly string[]): Json | undefined =>
  readPath(path, value);

/** A value with something set at a path; undefined removes it. Objects on the way are made if they are missing. */
export function withValue(
  value: Json | undefined,
  path: readonly string[],
  given: Json | undefined,
): Json | undefined {
  const [step, ...rest] = path;
  if (step === undefined) return given;
  if (Array.isArray(value) && /^[0-9]+$/.test(step)) return withItem(value, Number(step), rest, given);
  const fields: JsonFields = isFields(value) ? value : {};
  const next = withValue(Object.hasOwn(fields, step) ? fields[step] : undefined, rest, given);
  if (next !== undefined) return { ...fields, [step]: next };
  const { [step]: _gone, ...left } = fields;
  return left;
}

function withItem(
  list: readonly Json[],
  place: number,
  rest: readonly string[],
  given: Json | undefined,
): Json {
  const next = withValue(list[place], rest, given);
  if (next === undefined) return list.filter((_, one) => one !== place);
  const made = [...list];
  while (made.length < place) made.push(null);
  made[place] = next;
  return made;
}

export function isSame(one: Json | undefined, other: Json | undefined): boolean {
  if (Object.is(one, other)) return true;
  if (one === undefined || other === undefined || typeof one !== typeof other) return false;
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((item, place) => isSame(item, other[place] as Json));
  }
  if (!isFields(one) || !isFields(other)) return false;
  const keys = Object.keys(one);
  return (
    keys.length === Object.keys(other).length &&
    keys.every((key) => Object.hasOwn(other, key) && isSame(one[key], other[key]))
  );
}

/** A JSON pointer of a path. */
export const pointerOf = (path: readonly (string | number)[]): string =>
  path.map((step) => `/${pointerToken(String(step))}`).join("");

/** Whether a pointer is that of a place, or of something in it. */
export const isBelow = (pointer: string, place: string): boolean =>
  pointer === place || pointer.startsWith(`${place}/`);

/** A short text for a placeholder or a line of a list. */
export function shortText(value: Json | undefined): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

export const isExpression = (value: Json | undefined): value is string =>
  typeof value === "string" && value.startsWith("=");
