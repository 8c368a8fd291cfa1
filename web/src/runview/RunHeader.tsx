import { CopyButton, Tooltip, UnstyledButton } from "@mantine/core";
import { IconCheck, IconChevronLeft, IconCopy } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { StateMark } from "../canvas/StateMark";
import { isEnded, stepState } from "../model/run/state";
import { useRun } from "../stores/run";
import { texts } from "../texts";
import { between, formatDuration, formatWhen, shortId } from "../values/format";
import { useNow } from "./clock";
import { PauseButton } from "./PauseButton";
import pageClasses from "./page.module.css";
import type { RunHeaderData } from "./queries";
import { RunActions } from "./RunActions";
import { useDefinition } from "./runPage";
import { StatusPill } from "./StatusPill";
import classes from "./shared.module.css";
import { countStates } from "./stepRows";

function RunId({ id }: { readonly id: string }) {
  return (
    <CopyButton value={id}>
      {({ copied, copy }) => (
        <Tooltip label={copied ? texts.copied : id}>
          <UnstyledButton
            className={pageClasses.id}
            onClick={copy}
            aria-label={texts.runView.copyId(shortId(id))}
          >
            #{shortId(id)} {copied ? <IconCheck size={12} /> : <IconCopy size={12} stroke={1.75} />}
          </UnstyledButton>
        </Tooltip>
      )}
    </CopyButton>
  );
}

function Clock({ header }: { readonly header: RunHeaderData }) {
  const started = useRun((run) => run.startedAt) ?? header.startedAt;
  const finished = useRun((run) => run.finishedAt) ?? header.finishedAt;
  const now = useNow(started !== null && finished === null);
  if (started === null) return <span className={classes.dim}>{texts.runView.notStarted}</span>;
  return (
    <span className={classes.dim}>
      <time dateTime={started} title={started}>
        {texts.runView.started(formatWhen(started, now))}
      </time>
      {" · "}
      <span className={pageClasses.duration}>{formatDuration(between(started, finished, now) ?? 0)}</span>
    </span>
  );
}

/** How many steps have each state. */
function Counts() {
  const { nodes } = useDefinition();
  const steps = useRun((run) => run.nodes);
  const { counts, done, all, workers } = useMemo(() => {
    const wrapping = new Set([...nodes.values()].flatMap((node) => node.middlewares ?? []));
    const ids = [...nodes.keys()].filter((id) => !wrapping.has(id));
    const known = ids.map((id) => steps.get(id));
    return {
      counts: countStates(known.map(stepState)),
      done: known.filter((node) => node !== undefined && isEnded(node.status)).length,
      all: ids.length,
      workers: new Set(
        [...steps.values()].flatMap((node) => (node.status === "running" ? (node.workerId ?? []) : [])),
      ).size,
    };
  }, [nodes, steps]);
  return (
    <>
      <span>{texts.runView.stepsDone(done, all)}</span>
      {workers > 0 && <span>{texts.runView.count(workers, "worker")}</span>}
      {counts
        .filter(([state]) => state !== "notRun")
        .map(([state, count]) => (
          <Tooltip key={state} label={texts.stepState[state]}>
            <span className={pageClasses.countOf}>
              <StateMark state={state} size={14} />
              {count}
            </span>
          </Tooltip>
        ))}
    </>
  );
}

/** What the run is, how it stands, and what can be done with it. */
export function RunHeader({ header }: { readonly header: RunHeaderData }) {
  const words = texts.runView;
  const status = useRun((run) => (run.lastEvent > 0 ? run.status : null)) ?? header.status;
  const isCancelRequested = useRun((run) => run.isCancelRequested) || header.cancelRequested;
  const isActive = status === "queued" || status === "running";
  const name = header.name || shortId(header.workflowId);
  return (
    <section className={pageClasses.head} aria-label={words.about}>
      <div className={classes.headLine}>
        <Link to="/runs" className={classes.back}>
          <IconChevronLeft size={16} aria-hidden="true" />
          {words.back}
        </Link>
        <StatusPill status={status} isCancelling={isCancelRequested && isActive} />
        <h1 className={classes.title}>{name}</h1>
        <RunId id={header.runId} />
        {header.workflowVersion !== undefined && (
          <span className={classes.dim}>{words.version(header.workflowVersion)}</span>
        )}
        <Clock header={header} />
        {header.compensating !== undefined && isActive && (
          <span className={classes.dim}>{words.compensating}</span>
        )}
        <span className={classes.grow} />
        {isActive && <PauseButton />}
        <RunActions header={header} status={status} isCancelRequested={isCancelRequested} />
      </div>
      <div className={pageClasses.headFacts}>
        <span>{header.trigger !== undefined ? words.triggeredBy : words.by(header.by ?? "–")}</span>
        {header.rerunOf !== undefined && (
          <span>
            {words.rerunOf}{" "}
            <Link to="/runs/$runId" params={{ runId: header.rerunOf }} className={classes.link}>
              #{shortId(header.rerunOf)}
            </Link>
          </span>
        )}
        <Counts />
      </div>
    </section>
  );
}
