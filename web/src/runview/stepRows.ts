/** The steps of a run as rows of a table. */

import type { RunNode, StepState } from "../model/run/state";
import { stepState } from "../model/run/state";
import { between } from "../values/format";

export interface StepRow {
  readonly nodeId: string;
  readonly state: StepState;
  readonly label: string;
  readonly type: string;
  readonly duration: number | null;
  readonly attempt: number;
  readonly workerId: string;
  readonly package: string;
  readonly message: string;
  readonly place: number;
}

export const STEP_COLUMNS = ["state", "label", "duration", "attempt", "workerId", "package"] as const;
export type StepColumn = (typeof STEP_COLUMNS)[number];

/** What needs somebody's eyes is first. */
const URGENCY: readonly StepState[] = [
  "failed",
  "retrying",
  "running",
  "waiting",
  "queued",
  "cancelled",
  "notRun",
  "succeeded",
  "cached",
  "skipped",
];

interface Step {
  readonly nodeId: string;
  readonly label: string;
  readonly type: string;
  readonly package: string;
}

export function stepRows(
  steps: readonly Step[],
  nodes: ReadonlyMap<string, RunNode>,
  now: number,
): readonly StepRow[] {
  return steps.map((step, place) => {
    const node = nodes.get(step.nodeId);
    return {
      ...step,
      state: stepState(node),
      duration: node === undefined ? null : between(node.startedAt, node.finishedAt, now),
      attempt: node?.attempt ?? 0,
      workerId: node?.workerId ?? "",
      message: node?.error?.message ?? node?.waitingFor?.detail ?? node?.message ?? "",
      place,
    };
  });
}

export interface StepOrder {
  readonly column: StepColumn;
  readonly isDown: boolean;
}

export function sortSteps(rows: readonly StepRow[], order: StepOrder | null): readonly StepRow[] {
  if (order === null) return rows;
  const way = order.isDown ? -1 : 1;
  const { column } = order;
  return rows.toSorted((one, other) => {
    const found =
      column === "state"
        ? URGENCY.indexOf(one.state) - URGENCY.indexOf(other.state)
        : column === "duration"
          ? (one.duration ?? -1) - (other.duration ?? -1)
          : column === "attempt"
            ? one.attempt - other.attempt
            : one[column].localeCompare(other[column], undefined, { numeric: true });
    return found === 0 ? one.place - other.place : way * found;
  });
}

/** How many steps have each state, the most urgent first. */
export function countStates(rows: Iterable<StepState>): readonly (readonly [StepState, number])[] {
  const counts = new Map<StepState, number>();
  for (const state of rows) counts.set(state, (counts.get(state) ?? 0) + 1);
  return URGENCY.flatMap((state) => {
    const count = counts.get(state);
    return count === undefined ? [] : [[state, count] as const];
  });
}
