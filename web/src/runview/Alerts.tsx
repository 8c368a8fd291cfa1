import { Button } from "@mantine/core";
import { IconAlertTriangle, IconHourglass } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { useRun } from "../stores/run";
import { texts } from "../texts";
import { formatWhen, withLocalTimes } from "../values/format";
import { alertsOf, type WaitAlert } from "./alerts";
import classes from "./alerts.module.css";
import { useDefinition, useSelectStep } from "./runPage";
import shared from "./shared.module.css";

const NAMED = 3;

function Action({ alert }: { readonly alert: WaitAlert }) {
  const words = texts.runView.alerts;
  if (alert.holder !== null)
    return (
      <Link to="/runs/$runId" params={{ runId: alert.holder }} className={shared.link}>
        {words.seeRun}
      </Link>
    );
  if (alert.kind === "package")
    return (
      <Link to="/packages" className={shared.link}>
        {words.seePackages}
      </Link>
    );
  if (["worker", "capacity", "resource", "affinity"].includes(alert.kind))
    return (
      <Link to="/workers" className={shared.link}>
        {words.seeWorkers}
      </Link>
    );
  return null;
}

function Waits({ alert }: { readonly alert: WaitAlert }) {
  const words = texts.runView.alerts;
  const { labelOf } = useDefinition();
  const select = useSelectStep();
  const names = [...new Set(alert.steps.map((step) => labelOf(step.nodeId)))];
  const [first] = alert.steps;
  const Icon = alert.isUrgent ? IconAlertTriangle : IconHourglass;
  return (
    <li className={classes.alert} data-urgent={alert.isUrgent || undefined}>
      <Icon size={16} aria-hidden="true" />
      <div className={classes.alertText}>
        <span>
          <button
            type="button"
            className={shared.stepLink}
            onClick={() => first !== undefined && select(first.nodeId, first.scopePath)}
          >
            {names.length > 1 || alert.steps.length === 1
              ? words.steps(names.slice(0, NAMED), names.length)
              : `${names[0]} ×${alert.steps.length}`}
          </button>{" "}
          {words.reason(alert.kind, alert.steps.length > 1)}
          {alert.detail !== "" && `: ${withLocalTimes(alert.detail, Date.now())}`}
          {alert.until !== null &&
            alert.kind !== "time" &&
            ` (${words.until(formatWhen(alert.until, Date.now()))})`}
        </span>
        {words.help[alert.kind] !== undefined && <small>{words.help[alert.kind]}</small>}
      </div>
      <Action alert={alert} />
    </li>
  );
}

/** The step that made the run fail, with the way to it. */
function FirstError() {
  const words = texts.runView.alerts;
  const { labelOf } = useDefinition();
  const select = useSelectStep();
  const status = useRun((run) => run.status);
  const error = useRun((run) => run.error);
  const nodes = useRun((run) => run.nodes);
  if (status !== "failed") return null;
  const failed = [...nodes.values()].filter((node) => node.status === "failed");
  // What failed first is the cause, and of a step that failed because of what is inside, that.
  const first = failed.toSorted(
    (one, other) =>
      (one.finishedAt ?? "").localeCompare(other.finishedAt ?? "") ||
      (other.scopePath ?? "").length - (one.scopePath ?? "").length,
  )[0];
  const said = first?.error ?? error;
  const message = (said?.message || said?.code || "").split("\n", 1)[0] ?? "";
  return (
    <li className={classes.alert} data-failed>
      <IconAlertTriangle size={16} aria-hidden="true" />
      <div className={classes.alertText}>
        {first === undefined ? words.failedRun(message) : words.failed(labelOf(first.nodeId), message)}
      </div>
      {first !== undefined && (
        <Button variant="default" size="compact-xs" onClick={() => select(first.nodeId, first.scopePath)}>
          {words.showStep}
        </Button>
      )}
    </li>
  );
}

/** Why nothing moves, and what to do about it. */
export function Alerts() {
  const nodes = useRun((run) => run.nodes);
  const finishedAt = useRun((run) => run.finishedAt);
  const alerts = useMemo(() => alertsOf({ nodes, finishedAt }), [nodes, finishedAt]);
  return (
    <ul className={classes.alerts} aria-label={texts.runView.alerts.label}>
      <FirstError />
      {alerts
        // The decision itself is asked for below.
        .filter((alert) => alert.kind !== "approval")
        .map((alert) => (
          <Waits key={`${alert.kind} ${alert.detail}`} alert={alert} />
        ))}
    </ul>
  );
}
