import { StateMark } from "../canvas/StateMark";
import type { RunStatus } from "../model/run/events";
import type { StepState } from "../model/run/state";
import { texts } from "../texts";
import classes from "./shared.module.css";

/** The status of a run in the colours of the states of steps. */
export const RUN_STATES: Readonly<Record<RunStatus, StepState>> = {
  queued: "queued",
  running: "running",
  succeeded: "succeeded",
  failed: "failed",
  cancelled: "cancelled",
};

export function StatusPill({
  status,
  isCancelling = false,
}: {
  readonly status: RunStatus;
  readonly isCancelling?: boolean;
}) {
  const state = RUN_STATES[status];
  return (
    <span className={classes.pill} data-state={state}>
      <span aria-hidden="true" className={classes.pillMark}>
        <StateMark state={state} size={14} />
      </span>
      {isCancelling ? texts.runView.cancelling : texts.runStatus[status]}
    </span>
  );
}
