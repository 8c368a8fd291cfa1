/** What of the page of a run is in its address: reload and share give the same view. */

export const TABS = ["graph", "timeline", "steps", "events", "data", "artifacts"] as const;
export type Tab = (typeof TABS)[number];
export const LOG_KINDS = ["all", "log", "stdout", "stderr"] as const;
export type LogKind = (typeof LOG_KINDS)[number];
export const LEVELS = ["debug", "info", "warning", "error"] as const;
export type Level = (typeof LEVELS)[number];

export const PARTS = ["output", "input", "stream", "items", "inside", "artifacts", "history"] as const;
export type Part = (typeof PARTS)[number];

export interface RunSearch {
  readonly tab?: Tab | undefined;
  readonly step?: string | undefined;
  /** Where the step is, if it is inside of others. */
  readonly scope?: string | undefined;
  readonly attempt?: number | undefined;
  /** What of the step is in front. It stays when another step is selected, so that many are read one after the other. */
  readonly part?: Part | undefined;
  readonly log?: LogKind | undefined;
  readonly level?: Level | undefined;
  readonly q?: string | undefined;
  /** The logs are those of all steps, whatever is selected. */
  readonly logsOf?: "all" | undefined;
}

const oneOf = <T extends string>(all: readonly T[], given: unknown): T | undefined =>
  all.find((one) => one === given);
const textOf = (given: unknown): string | undefined => {
  // A text of digits comes out of the address as a number.
  if (typeof given === "number") return String(given);
  return typeof given === "string" && given !== "" ? given : undefined;
};
const countOf = (given: unknown): number | undefined => {
  const number = typeof given === "string" ? Number(given) : given;
  return typeof number === "number" && Number.isInteger(number) && number > 0 ? number : undefined;
};

/** What is not as it should be is left out: an old address still opens the page. */
export function readRunSearch(given: Readonly<Record<string, unknown>>): RunSearch {
  const step = textOf(given.step);
  const read: Record<string, unknown> = {
    tab: oneOf(TABS, given.tab),
    step,
    scope: step === undefined ? undefined : textOf(given.scope),
    attempt: step === undefined ? undefined : countOf(given.attempt),
    part: oneOf(PARTS, given.part),
    log: oneOf(LOG_KINDS, given.log),
    level: oneOf(LEVELS, given.level),
    q: textOf(given.q),
    logsOf: oneOf(["all"], given.logsOf),
  };
  return Object.fromEntries(Object.entries(read).filter(([, value]) => value !== undefined)) as RunSearch;
}

export interface CompareSearch {
  readonly first?: string | undefined;
  readonly second?: string | undefined;
}

export function readCompareSearch(given: Readonly<Record<string, unknown>>): CompareSearch {
  const [first, second] = [textOf(given.first), textOf(given.second)];
  return { ...(first === undefined ? {} : { first }), ...(second === undefined ? {} : { second }) };
}
