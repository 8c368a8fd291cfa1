import {
  IconAlertTriangleFilled,
  IconBan,
  IconBolt,
  IconCircleCheckFilled,
  IconCircleDashed,
  IconClock,
  IconHourglass,
  IconLoader2,
  IconPlayerSkipForward,
  type IconProps,
  IconRefresh,
} from "@tabler/icons-react";
import type { ComponentType } from "react";
import type { StepState } from "../model/run/state";
import { texts } from "../texts";
import classes from "./canvas.module.css";

const MARKS: Readonly<Record<StepState, ComponentType<IconProps>>> = {
  notRun: IconCircleDashed,
  queued: IconClock,
  running: IconLoader2,
  waiting: IconHourglass,
  retrying: IconRefresh,
  succeeded: IconCircleCheckFilled,
  cached: IconBolt,
  failed: IconAlertTriangleFilled,
  cancelled: IconBan,
  skipped: IconPlayerSkipForward,
};

/** The state of a step: a colour, an icon and a word, never a colour alone. */
export function StateMark({ state, size = 16 }: { readonly state: StepState; readonly size?: number }) {
  const Mark = MARKS[state];
  return (
    <span className={classes.mark} data-state={state} role="img" aria-label={texts.stepState[state]}>
      <Mark size={size} stroke={2} />
    </span>
  );
}
