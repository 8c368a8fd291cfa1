import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { components } from "../../api/schema";
import type { RunNode } from "../../model/run/state";
import { stepState } from "../../model/run/state";
import { texts } from "../../texts";
import { between, formatClock, formatDuration, shortId, withLocalTimes } from "../../values/format";
import { useNow } from "../clock";
import type { NodeDetail } from "../queries";
import shared from "../shared.module.css";
import { WorkerName } from "../WorkerName";
import classes from "./step.module.css";

interface Props {
  readonly detail: NodeDetail;
  readonly node: RunNode | undefined;
  readonly attempt: components["schemas"]["Attempt"] | undefined;
}

/** How the step stands, who runs it, and how long it waited and ran. */
export function StepFacts({ detail, node, attempt }: Props) {
  const words = texts.runView.step;
  const isRunning = node?.status === "running";
  const now = useNow(isRunning, 500);
  const started = attempt?.startedAt ?? detail.startedAt;
  const finished = attempt === undefined ? detail.finishedAt : attempt.finishedAt;
  const took = between(started, finished, now);
  const waited =
    attempt?.queuedAt === undefined
      ? between(
          detail.readyAt ?? null,
          detail.attempts[0]?.dispatchedAt ?? detail.startedAt ?? detail.finishedAt,
          now,
        )
      : between(attempt.queuedAt, attempt.dispatchedAt, now);
  const state = texts.stepState[stepState(node)];
  const waiting = node?.waitingFor ?? null;
  const summary = [
    state.toLowerCase(),
    detail.attempt > 0 ? words.attempt(attempt?.attempt ?? detail.attempt, detail.maxAttempts) : null,
    detail.retryAt === undefined ? null : words.nextAttempt(formatClock(detail.retryAt)),
    detail.calls === undefined ? null : words.calls(detail.calls),
  ].filter((one) => one !== null);
  const facts: readonly (readonly [string, ReactNode])[] = [
    [words.worker, workerOf(attempt?.workerId ?? detail.workerId)],
    [words.package, `${detail.package.name} ${detail.package.version}`],
    [words.type, <code key="type">{detail.type}</code>],
    [words.queued, waited === null || waited < 1 ? null : formatDuration(waited)],
    [words.started, timeOf(started)],
    [words.finished, timeOf(finished)],
    [words.duration, took === null ? null : formatDuration(took)],
  ];
  const metrics = Object.entries(node?.metrics ?? detail.metrics ?? {});
  return (
    <div className={classes.factsBox}>
      <p className={classes.summary} data-state={stepState(node)}>
        {summary.join(" · ")}
      </p>
      {waiting !== null && waiting.detail !== "" && (
        <p className={classes.waiting}>{withLocalTimes(waiting.detail, now)}</p>
      )}
      {node?.message != null && isRunning && <p className={shared.dim}>{node.message}</p>}
      {detail.pinned && <p className={shared.dim}>{words.pinned}</p>}
      {detail.reusedFrom != null && (
        <p className={shared.dim}>
          {words.reused}{" "}
          <Link
            to="/runs/$runId"
            params={{ runId: detail.reusedFrom.runId }}
            search={{ step: detail.reusedFrom.nodeId }}
          >
            #{shortId(detail.reusedFrom.runId)}
          </Link>
        </p>
      )}
      <dl className={classes.facts}>
        {facts
          .filter(([, value]) => value !== null)
          .map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        {metrics.map(([name, value]) => (
          <div key={`metric ${name}`}>
            <dt>{name}</dt>
            <dd>{Number.isInteger(value) ? value : value.toPrecision(4)}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

const workerOf = (id: string | null): ReactNode =>
  id === null ? null : (
    <Link to="/workers" search={{ worker: id }}>
      <WorkerName id={id} />
    </Link>
  );

const timeOf = (at: string | null): ReactNode =>
  at === null ? null : (
    <time dateTime={at} title={at}>
      {formatClock(at, true)}
    </time>
  );
