/** What goes over a wire: how much, how large, the first of it, and who has it. */

import { referenceOf } from "../values/references";

export interface WireSummary {
  /** Items of a list; null: one value. */
  readonly count: number | null;
  readonly bytes: number | null;
  readonly first: string;
  /** The worker that has what is referred to. */
  readonly owner: string | null;
}

const FIRST_CHARS = 120;
/** Up to here a size is counted; a larger value costs more to count than it tells. */
const COUNTED_CHARS = 200_000;

export function valueAtPath(value: unknown, path: readonly string[]): unknown {
  let at = value;
  for (const key of path) {
    if (typeof at !== "object" || at === null) return undefined;
    at = (at as Readonly<Record<string, unknown>>)[key];
  }
  return at;
}

/** Null if there is nothing to tell: the port has no value, or only says that something is done. */
export function summaryOf(result: unknown, path: readonly string[]): WireSummary | null {
  const value = valueAtPath(result, path);
  if (value === undefined) return null;
  const first = Array.isArray(value) ? (value as unknown[])[0] : value;
  const reference = referenceOf(value) ?? referenceOf(first);
  return {
    count: Array.isArray(value) ? value.length : null,
    bytes: reference === null ? sizeOf(value) : reference.sizeBytes,
    first: reference === null ? short(first) : reference.name,
    owner: reference?.workerId ?? null,
  };
}

function sizeOf(value: unknown): number | null {
  if (typeof value === "string") return value.length;
  if (Array.isArray(value) && value.length > 2_000) return null;
  const text = JSON.stringify(value) ?? "";
  return text.length > COUNTED_CHARS ? null : text.length;
}

function short(value: unknown): string {
  if (value === undefined) return "";
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  return text.length > FIRST_CHARS ? `${text.slice(0, FIRST_CHARS)}…` : text;
}
