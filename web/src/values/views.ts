/** Which ways there are to show a value, the best one first. */

import { isFields, referenceOf, secretOf } from "./references";

export type ValueViewKind =
  | "tree"
  | "members"
  | "table"
  | "text"
  | "markdown"
  | "image"
  | "video"
  | "audio"
  | "reference"
  | "secret";

/** Longer texts are shown in part until somebody asks for all. */
export const SHOWN_CHARS = 20_000;
/** Rows that decide whether a list is a table. */
const LOOKED_AT = 50;
const MAX_COLUMNS = 40;
/** A text is looked at up to here: a long one decides nothing more. */
const SAMPLE_CHARS = 4_000;

const DATA_URL = /^data:(image|video|audio)\/[\w.+-]+;base64,/;
const MARKDOWN = [
  /^#{1,6} \S/m,
  /^\s*[-*] \S.*\n\s*[-*] \S/m,
  /\*\*[^*\n]+\*\*/,
  /^```/m,
  /\[[^\]\n]+\]\(https?:/,
  /^\|.+\|\s*$/m,
];

export function viewsOf(value: unknown): readonly ValueViewKind[] {
  if (typeof value === "string") return viewsOfText(value);
  if (secretOf(value) !== null) return ["secret"];
  if (referenceOf(value) !== null) return ["reference", "tree"];
  if (columnsOf(value) !== null) return ["table", "tree"];
  if (isFields(value)) return hasRichMember(value) ? ["members", "tree"] : ["tree"];
  if (typeof value === "object" && value !== null) return ["tree"];
  return ["text"];
}

/** Members that a tree would not do justice. */
const RICH: ReadonlySet<ValueViewKind> = new Set([
  "table",
  "markdown",
  "image",
  "video",
  "audio",
  "reference",
]);
const MAX_MEMBERS = 12;

function hasRichMember(value: Readonly<Record<string, unknown>>): boolean {
  const members = Object.values(value);
  if (members.length > MAX_MEMBERS) return false;
  return members.some((member) => !isPlainObject(member) && RICH.has(viewsOf(member)[0] ?? "text"));
}

/** What is deeper is looked at when it is opened. */
const isPlainObject = (value: unknown): boolean =>
  isFields(value) && referenceOf(value) === null && secretOf(value) === null;

function viewsOfText(text: string): readonly ValueViewKind[] {
  const media = DATA_URL.exec(text)?.[1] as "image" | "video" | "audio" | undefined;
  if (media !== undefined) return [media, "text"];
  const sample = text.slice(0, SAMPLE_CHARS);
  if (jsonOf(text) !== undefined) return ["text", "tree"];
  return MARKDOWN.some((one) => one.test(sample)) ? ["markdown", "text"] : ["text", "markdown"];
}

/** The JSON that a text holds, if it holds an object or a list and is not too long to look. */
export function jsonOf(text: string): unknown {
  const first = text.trimStart()[0];
  if ((first !== "{" && first !== "[") || text.length > 1_000_000) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** The columns of a list of objects; null if it is no table. */
export function columnsOf(value: unknown): readonly string[] | null {
  if (!Array.isArray(value) || value.length === 0) return null;
  const columns = new Set<string>();
  let cells = 0;
  const sample = value.slice(0, LOOKED_AT) as unknown[];
  for (const row of sample) {
    if (!isFields(row) || referenceOf(row) !== null) return null;
    for (const key of Object.keys(row)) columns.add(key);
    cells += Object.keys(row).length;
  }
  // Objects that share next to nothing are better read one by one.
  const isTable =
    columns.size > 0 && columns.size <= MAX_COLUMNS && cells >= columns.size * sample.length * 0.4;
  return isTable ? [...columns] : null;
}
