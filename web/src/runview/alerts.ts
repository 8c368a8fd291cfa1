/** Why nothing moves: what the steps of a run wait for, those with the same reason together. */

import type { WaitingFor } from "../model/run/events";
import type { RunState } from "../model/run/state";

export interface WaitingStep {
  readonly nodeId: string;
  readonly scopePath: string | null;
}

export interface WaitAlert {
  readonly kind: string;
  readonly detail: string;
  /** Somebody has to do something, or it waits for ever. */
  readonly isUrgent: boolean;
  readonly steps: readonly WaitingStep[];
  readonly until: string | null;
  /** The run that has what these steps need. */
  readonly holder: string | null;
}

/** Waits that end by themselves and soon are no news. */
const QUIET = new Set(["retry", "calls", "slot", "dispatch"]);
/** People decide, not the fleet. */
const PATIENT = new Set(["approval", "signal", "time", "key"]);
const ORDER = [
  "tenant",
  "worker",
  "package",
  "capacity",
  "resource",
  "affinity",
  "approval",
  "signal",
  "key",
  "time",
];

interface Held extends WaitingFor {
  readonly heldBy?: { readonly runId?: string } | null;
}

export function alertsOf(run: Pick<RunState, "nodes" | "finishedAt">): readonly WaitAlert[] {
  if (run.finishedAt !== null) return [];
  const found = new Map<string, { alert: Omit<WaitAlert, "steps">; steps: WaitingStep[] }>();
  for (const node of run.nodes.values()) {
    const waiting = node.waitingFor as Held | null;
    if (waiting === null || QUIET.has(waiting.kind)) continue;
    // Each approval and each time is its own; a worker that is missing is missing for all alike.
    const key = `${waiting.kind} ${waiting.kind === "time" ? "" : waiting.detail}`;
    const known = found.get(key);
    const step = { nodeId: node.nodeId, scopePath: node.scopePath };
    if (known !== undefined) {
      known.steps.push(step);
      continue;
    }
    const alert = {
      kind: waiting.kind,
      detail: waiting.detail,
      isUrgent: !PATIENT.has(waiting.kind),
      until: waiting.until ?? null,
      holder: waiting.heldBy?.runId ?? null,
    };
    found.set(key, { alert, steps: [step] });
  }
  return [...found.values()]
    .map(({ alert, steps }) => ({ ...alert, steps }))
    .sort((one, other) => ORDER.indexOf(one.kind) - ORDER.indexOf(other.kind));
}
