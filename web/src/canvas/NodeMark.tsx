import {
  IconAlertCircleFilled,
  IconBan,
  IconPackageOff,
  IconPencil,
  IconPinFilled,
} from "@tabler/icons-react";
import { type StepState, stepState } from "../model/run/state";
import { useHasRun, useStep } from "../stores/run";
import { texts } from "../texts";
import classes from "./canvas.module.css";
import { useDecor } from "./decor";
import { StateMark } from "./StateMark";

interface Props {
  readonly id: string;
  readonly isMissing: boolean;
  readonly isDisabled: boolean;
}

/** One mark for each step, the most important: not installed, disabled, failed, with problems, pinned, edited, state. */
export function NodeMark({ id, isMissing, isDisabled }: Props) {
  const problems = useDecor((decor) => decor.problems.get(id) ?? 0);
  const isPinned = useDecor((decor) => decor.pins.has(id));
  const isEdited = useDecor((decor) => decor.edited.has(id));
  const hasRun = useHasRun();
  const state: StepState = stepState(useStep(id));
  if (isMissing) return <Mark kind="missing" label={texts.canvas.notInstalled} icon={IconPackageOff} />;
  if (isDisabled) return <Mark kind="disabled" label={texts.canvas.disabled} icon={IconBan} />;
  if (hasRun && state === "failed") return <StateMark state={state} />;
  if (problems > 0)
    return <Mark kind="problem" label={texts.canvas.problems(problems)} icon={IconAlertCircleFilled} />;
  if (isPinned) return <Mark kind="pinned" label={texts.canvas.pinned} icon={IconPinFilled} />;
  if (hasRun && isEdited && state !== "running" && state !== "queued")
    return <Mark kind="edited" label={texts.canvas.edited} icon={IconPencil} />;
  return hasRun ? <StateMark state={state} /> : null;
}

function Mark({
  kind,
  label,
  icon: Icon,
}: {
  readonly kind: string;
  readonly label: string;
  readonly icon: typeof IconBan;
}) {
  return (
    <span className={classes.mark} data-mark={kind} role="img" aria-label={label} title={label}>
      <Icon size={16} stroke={2} />
    </span>
  );
}
