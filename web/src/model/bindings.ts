/**
 * Paths of bindings, as the scheduler reads them: `results.page.url` and `/results/page/url` are the same. The rules
 * and the limits are those of `core/workflow/bindings.py`.
 */

import type { Json, JsonFields } from "./json/tree";

export const MAX_PATH_CHARS = 512;
export const MAX_PATH_SEGMENTS = 32;
export const MAX_PATH_INDEX = 9_999;

const FORBIDDEN = new Set(["", ".", "..", "__proto__", "prototype"]);

export type PathResult = { readonly path: readonly string[] } | { readonly problem: string };

export function compilePath(text: string): PathResult {
  if ([...text].length > MAX_PATH_CHARS)
    return { problem: `the path is longer than ${MAX_PATH_CHARS} characters` };
  const isPointer = text.startsWith("/");
  const raw = isPointer ? text.slice(1).split("/") : text.split(".");
  if (raw.length > MAX_PATH_SEGMENTS)
    return { problem: `the path has more than ${MAX_PATH_SEGMENTS} segments` };
  const path = isPointer ? raw.map((one) => one.replaceAll("~1", "/").replaceAll("~0", "~")) : raw;
  for (const segment of path) {
    if (FORBIDDEN.has(segment))
      return { problem: `the path has a segment that is not allowed: '${segment}'` };
    if (!isPrintable(segment)) return { problem: "the path has characters that cannot be shown" };
    if (/^\p{Nd}+$/u.test(segment) && (segment.length > 9 || Number(segment) > MAX_PATH_INDEX)) {
      return { problem: `the path has an index above ${MAX_PATH_INDEX}: ${segment}` };
    }
  }
  return { path };
}

/** As Python's `isprintable`: no control, format, surrogate, private or unassigned character, no space but U+0020. */
export function isPrintable(text: string): boolean {
  return !/[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/u.test(text);
}

/** What a path leads to; undefined if it leads nowhere. */
export function readPath(path: readonly string[], document: Json | undefined): Json | undefined {
  let here: Json | undefined = document;
  for (const segment of path) {
    if (Array.isArray(here)) {
      here = /^[0-9]+$/.test(segment) ? (here as readonly Json[])[Number(segment)] : undefined;
    } else if (here !== null && typeof here === "object" && Object.hasOwn(here, segment)) {
      here = (here as JsonFields)[segment];
    } else {
      return undefined;
    }
  }
  return here;
}
