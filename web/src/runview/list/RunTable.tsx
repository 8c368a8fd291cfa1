import { Checkbox, Tooltip } from "@mantine/core";
import { IconUserCheck } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { Time } from "../../app/ListPage";
import { texts } from "../../texts";
import { between, formatDuration, shortId } from "../../values/format";
import { useNow } from "../clock";
import type { RunSummary } from "../queries";
import { StatusPill } from "../StatusPill";
import classes from "./list.module.css";

interface Props {
  readonly runs: readonly RunSummary[];
  /** The row that the keys are at. */
  readonly active: number;
  readonly selected: ReadonlySet<string>;
  /** Runs that wait for a decision of a person. */
  readonly waiting: ReadonlySet<string>;
  readonly onSelect: (ids: ReadonlySet<string>) => void;
}

export function RunTable({ runs, active, selected, waiting, onSelect }: Props) {
  const words = texts.runView.list;
  const now = useNow(runs.some((run) => run.startedAt !== null && run.finishedAt === null));
  const toggle = (id: string): void => {
    const after = new Set(selected);
    if (!after.delete(id)) after.add(id);
    onSelect(after);
  };
  const all = runs.length > 0 && runs.every((run) => selected.has(run.runId));
  return (
    <div className={classes.box}>
      <table className={classes.table} aria-label={words.label}>
        <thead>
          <tr>
            <th className={classes.check}>
              <Checkbox
                size="xs"
                aria-label={words.selectAll}
                checked={all}
                indeterminate={!all && selected.size > 0}
                onChange={() => onSelect(all ? new Set() : new Set(runs.map((run) => run.runId)))}
              />
            </th>
            <th className={classes.status}>{words.status}</th>
            <th>{words.name}</th>
            <th className={classes.id}>{words.run}</th>
            <th className={classes.time}>{words.started}</th>
            <th className={classes.duration}>{words.duration}</th>
            <th className={classes.by}>{words.by}</th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run, place) => (
            <Row
              key={run.runId}
              run={run}
              now={now}
              isActive={place === active}
              isSelected={selected.has(run.runId)}
              isWaiting={waiting.has(run.runId) && run.finishedAt === null}
              onToggle={() => toggle(run.runId)}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface RowProps {
  readonly run: RunSummary;
  readonly now: number;
  readonly isActive: boolean;
  readonly isSelected: boolean;
  readonly isWaiting: boolean;
  readonly onToggle: () => void;
}

function Row({ run, now, isActive, isSelected, isWaiting, onToggle }: RowProps) {
  const row = useRef<HTMLTableRowElement>(null);
  useEffect(() => {
    if (isActive) row.current?.scrollIntoView({ block: "nearest" });
  }, [isActive]);
  const took = between(run.startedAt, run.finishedAt, now);
  const name = run.name || shortId(run.workflowId);
  const message = run.status === "failed" ? (run.error?.message ?? run.error?.code ?? "") : "";
  return (
    <tr ref={row} data-active={isActive || undefined} data-selected={isSelected || undefined}>
      <td className={classes.check}>
        <Checkbox
          size="xs"
          aria-label={texts.runView.list.select(shortId(run.runId))}
          checked={isSelected}
          onChange={onToggle}
        />
      </td>
      <td>
        <span className={classes.states}>
          <StatusPill status={run.status} isCancelling={run.cancelRequested && run.finishedAt === null} />
          {isWaiting && (
            <Tooltip label={texts.runView.approvals.waits}>
              <span className={classes.waits} role="img" aria-label={texts.runView.approvals.waits}>
                <IconUserCheck size={16} />
              </span>
            </Tooltip>
          )}
        </span>
      </td>
      <td>
        <Link to="/runs/$runId" params={{ runId: run.runId }} className={classes.name}>
          {name}
        </Link>
        {run.workflowVersion !== null && (
          <span className={classes.version}>{texts.runView.version(run.workflowVersion)}</span>
        )}
        {message !== "" && <small title={message}>{message.split("\n", 1)[0]}</small>}
      </td>
      <td>
        <code title={run.runId}>{shortId(run.runId)}</code>
      </td>
      <td>
        <Time at={run.startedAt ?? run.createdAt} />
      </td>
      <td className={classes.number}>{took === null ? "" : formatDuration(took)}</td>
      <td>{run.trigger !== undefined ? texts.runView.triggeredBy : (run.by ?? "")}</td>
    </tr>
  );
}
