import type { Json, JsonNode } from "./tree";
import { isParent } from "./tree";

/** How the author of a text writes: over several lines, on one line with spaces, or without any. */
export interface JsonStyle {
  /** The spaces of one level; empty where everything is on one line. */
  readonly indent: string;
  readonly isSpaced: boolean;
}

export const TWO_SPACES: JsonStyle = { indent: "  ", isSpaced: true };

/** The style of a text, by its first lines. */
export function styleOf(node: JsonNode): JsonStyle {
  if (!isParent(node)) return TWO_SPACES;
  const first = node.children[0];
  if (first === undefined) return TWO_SPACES;
  const lead = node.text.slice(1, first.start);
  const line = lead.lastIndexOf("\n");
  const afterKey = node.text[first.valueStart - 1];
  return { indent: line < 0 ? "" : lead.slice(line + 1) || "  ", isSpaced: line >= 0 || afterKey === " " };
}

/** The text of a new value in that style, for a place at this depth. */
export function print(value: Json, style: JsonStyle, depth: number): string {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const isList = Array.isArray(value);
  const rows = isList
    ? (value as readonly Json[]).map((item) => print(item, style, depth + 1))
    : Object.entries(value).map(
        ([key, item]) =>
          `${JSON.stringify(key)}:${style.isSpaced ? " " : ""}${print(item as Json, style, depth + 1)}`,
      );
  return enclosed(isList, rows, style, depth);
}

function enclosed(isList: boolean, rows: readonly string[], style: JsonStyle, depth: number): string {
  const [open, close] = isList ? ["[", "]"] : ["{", "}"];
  if (rows.length === 0) return `${open}${close}`;
  return `${open}${lead(style, depth + 1)}${rows.join(separator(style, depth + 1))}${lead(style, depth)}${close}`;
}

/** What is before the first child of a parent whose children are at this depth. */
export function lead(style: JsonStyle, depth: number): string {
  return style.indent === "" ? "" : `\n${style.indent.repeat(depth)}`;
}

export function separator(style: JsonStyle, depth: number): string {
  return style.indent === "" ? (style.isSpaced ? ", " : ",") : `,${lead(style, depth)}`;
}

/** A tree over several lines, each value and each key as it was written. */
export function spread(node: JsonNode, depth = 0): string {
  if (!isParent(node) || node.children.length === 0) return node.text;
  const rows = node.children.map((child) => {
    const key = node.kind === "array" ? "" : node.text.slice(child.start, child.valueStart).trimEnd();
    return `${key}${key && " "}${spread(child.value, depth + 1)}`;
  });
  return enclosed(node.kind === "array", rows, TWO_SPACES, depth);
}
