/** What the address of the editor says: reload and share give the same view. */

export interface EditorSearch {
  /** A version that is shown read-only; the newest, to edit, if it is missing. */
  readonly version?: number;
  /** The selected step. */
  readonly node?: string;
  /** The field of it that is shown. */
  readonly field?: string;
  /** The run on the canvas. */
  readonly run?: string;
  /** Two states to compare, as `3..draft`. */
  readonly compare?: string;
  /** It does not exist yet. */
  readonly new?: boolean;
}

const textIn = (value: unknown): string | null => (typeof value === "string" && value !== "" ? value : null);

export function readSearch(search: Record<string, unknown>): EditorSearch {
  const version = Number(search.version);
  const [node, field, run, compare] = ["node", "field", "run", "compare"].map((name) => textIn(search[name]));
  return {
    ...(Number.isInteger(version) && version > 0 ? { version } : {}),
    ...(node ? { node } : {}),
    ...(field ? { field } : {}),
    ...(run ? { run } : {}),
    ...(compare ? { compare } : {}),
    ...(search.new === true || search.new === "true" ? { new: true } : {}),
  };
}

/** The two states of a comparison. */
export function comparedStates(compare: string): readonly [string, string] | null {
  const [from, to] = compare.split("..");
  return from && to ? [from, to] : null;
}
