/** The filters of the list of runs, in its address. */

import type { components } from "../../api/schema";

export const STATUSES = ["queued", "running", "succeeded", "failed", "cancelled"] as const;
export type ListedStatus = components["schemas"]["RunSummary"]["status"];
export const TIMES = ["hour", "day", "week"] as const;
export type TimeFilter = (typeof TIMES)[number];

export interface RunsSearch {
  readonly status?: ListedStatus | undefined;
  readonly workflow?: string | undefined;
  /** Who submitted it. */
  readonly by?: string | undefined;
  readonly text?: string | undefined;
  readonly time?: TimeFilter | undefined;
}

const textOf = (given: unknown): string | undefined => {
  if (typeof given === "number") return String(given);
  return typeof given === "string" && given !== "" ? given : undefined;
};

export function readRunsSearch(given: Readonly<Record<string, unknown>>): RunsSearch {
  const read: Record<string, unknown> = {
    status: STATUSES.find((one) => one === given.status),
    workflow: textOf(given.workflow),
    by: textOf(given.by),
    text: textOf(given.text),
    time: TIMES.find((one) => one === given.time),
  };
  return Object.fromEntries(Object.entries(read).filter(([, value]) => value !== undefined)) as RunsSearch;
}

const HOURS: Readonly<Record<TimeFilter, number>> = { hour: 1, day: 24, week: 168 };

/** The filters as the API takes them. A time is rounded down to a minute, so that the same question stays the same. */
export function queryOf(search: RunsSearch, now: number) {
  const minute = Math.floor(now / 60_000) * 60_000;
  return {
    ...(search.status === undefined ? {} : { status: search.status }),
    ...(search.workflow === undefined ? {} : { workflowId: search.workflow }),
    ...(search.by === undefined ? {} : { by: search.by }),
    ...(search.text === undefined ? {} : { text: search.text }),
    ...(search.time === undefined
      ? {}
      : { since: new Date(minute - HOURS[search.time] * 3_600_000).toISOString() }),
  };
}

/** The names to offer for who submitted a run: one's own, then those of the runs that are shown. */
export function peopleOf(runs: readonly { readonly by?: string }[], me: string | null): string[] {
  const others = new Set(runs.flatMap((run) => (run.by === undefined || run.by === me ? [] : [run.by])));
  return [...(me === null ? [] : [me]), ...[...others].sort((one, other) => one.localeCompare(other))];
}
