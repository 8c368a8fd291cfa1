import { Tabs } from "@mantine/core";
import { useRef } from "react";
import { CALL_TYPE, CONTAINER_TYPE } from "../../model/definition";
import { isEnded, type RunNode } from "../../model/run/state";
import { texts } from "../../texts";
import { formatClock } from "../../values/format";
import { ValueView } from "../../values/ValueView";
import { ArtifactList } from "../ArtifactsTab";
import { Nothing } from "../Panel";
import type { NodeDetail } from "../queries";
import { useDefinition, useRunId, useRunSearch, useSetSearch } from "../runPage";
import type { Part } from "../search";
import { WorkerName } from "../WorkerName";
import { itemOf } from "./crumbs";
import { ErrorView } from "./ErrorView";
import { InsideView } from "./InsideView";
import { ItemsView } from "./ItemsView";
import { StepFacts } from "./StepFacts";
import { StreamView } from "./StreamView";
import classes from "./step.module.css";

interface Props {
  readonly detail: NodeDetail;
  readonly node: RunNode | undefined;
  readonly scope: string | undefined;
  readonly seen: string;
}

/** Channels that are logs, not streams. */
const LOGS = new Set(["log", "stdout", "stderr", "dropped"]);

function Attempts({ detail, chosen }: { readonly detail: NodeDetail; readonly chosen: number }) {
  const set = useSetSearch();
  const attempts = detail.attempts.filter((one) => one.callId === undefined);
  if (attempts.length < 2) return null;
  return (
    <fieldset className={classes.attempts} aria-label={texts.runView.step.attempts}>
      {attempts.map((one) => (
        <button
          key={one.attempt}
          type="button"
          aria-pressed={one.attempt === chosen}
          data-status={one.status}
          onClick={() => set({ attempt: one.attempt === detail.attempt ? undefined : one.attempt })}
        >
          {one.attempt} {MARKS[one.status]}
        </button>
      ))}
    </fieldset>
  );
}

const MARKS: Readonly<Record<string, string>> = {
  succeeded: "✓",
  failed: "✗",
  lost: "✗",
  refused: "✗",
  cancelled: "⊘",
  running: "⟳",
  dispatched: "→",
  skipped: "↷",
};

export function StepBody({ detail, node, scope, seen }: Props) {
  const words = texts.runView.step;
  const runId = useRunId();
  const search = useRunSearch();
  const set = useSetSearch();
  const definition = useDefinition();
  const chosen = search.attempt ?? detail.attempt;
  const attempt = detail.attempts.find((one) => one.attempt === chosen && one.callId === undefined);
  const isLatest = chosen === detail.attempt;
  const error = isLatest ? (detail.error ?? attempt?.error ?? null) : (attempt?.error ?? null);
  const streams = Object.fromEntries(
    Object.entries(node?.streams ?? {}).filter(([channel]) => !LOGS.has(channel)),
  );
  const hasStream = Object.keys(streams).length > 0;
  const ownItem = itemOf(detail.nodeId, scope);
  const isMap = definition.nodes.get(detail.nodeId)?.map != null && ownItem === null;
  const isBox = detail.type === CONTAINER_TYPE || detail.type === CALL_TYPE;
  const isRunning = node?.status === "running";
  const parts: readonly Part[] = [
    ...(hasStream ? (["stream"] as const) : []),
    ...(isMap ? (["items"] as const) : []),
    ...(isBox && !isMap ? (["inside"] as const) : []),
    "output",
    "input",
    ...(detail.artifacts.length > 0 ? (["artifacts"] as const) : []),
    "history",
  ];
  // Whoever has watched the stream goes on reading it when the step ends.
  const hasWatched = useRef(false);
  if (isRunning && hasStream) hasWatched.current = true;
  const usual: Part = hasWatched.current ? "stream" : detail.result == null && isMap ? "items" : "output";
  const part = search.part !== undefined && parts.includes(search.part) ? search.part : usual;
  return (
    <div className={classes.sideBody}>
      <Attempts detail={detail} chosen={chosen} />
      <StepFacts detail={detail} node={node} attempt={attempt} />
      {error !== null && error.code !== "" && <ErrorView error={error} />}
      <Tabs
        value={part}
        onChange={(next) => set({ part: (next as Part | null) ?? undefined })}
        keepMounted={false}
      >
        <Tabs.List aria-label={words.tabs.label}>
          {parts.map((one) => (
            <Tabs.Tab key={one} value={one}>
              {words.tabs[one]}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value={part} className={classes.sidePart}>
          {part === "output" && <Output detail={detail} isLatest={isLatest} />}
          {part === "input" && <Input detail={detail} />}
          {part === "stream" && <StreamView streams={streams} isLive={isRunning} />}
          {part === "items" && (
            <ItemsView
              runId={runId}
              nodeId={detail.nodeId}
              scope={scope}
              seen={`${seen} ${itemsSeen(node)}`}
            />
          )}
          {part === "inside" && (
            <InsideView
              runId={runId}
              nodeId={detail.nodeId}
              scope={ownItem === null ? scope : ownItem.scope}
              item={ownItem?.item}
              seen={seen}
            />
          )}
          {part === "artifacts" && <ArtifactList artifacts={detail.artifacts} />}
          {part === "history" && <History detail={detail} />}
        </Tabs.Panel>
      </Tabs>
    </div>
  );
}

const itemsSeen = (node: RunNode | undefined): string => {
  const counts = node?.itemCounts;
  return counts == null ? "" : `${counts.succeeded} ${counts.failed} ${counts.running}`;
};

function Output({ detail, isLatest }: { readonly detail: NodeDetail; readonly isLatest: boolean }) {
  const words = texts.runView.step;
  if (detail.resultTruncated) return <Nothing title={words.largeResult} />;
  if (!isLatest || detail.result == null)
    return (
      <Nothing
        title={isEnded(detail.status) ? words.withoutOutput : words.noOutput}
        {...(isLatest ? {} : { hint: words.earlier })}
      />
    );
  if (isEmpty(detail.result)) return <Nothing title={words.emptyOutput} />;
  return <ValueView value={detail.result} />;
}

const isEmpty = (value: unknown): boolean =>
  typeof value === "object" && value !== null && Object.keys(value).length === 0;

function Input({ detail }: { readonly detail: NodeDetail }) {
  const words = texts.runView.step;
  if (detail.parametersTruncated) return <Nothing title={words.largeParameters} />;
  const parameters = detail.parameters as Readonly<Record<string, unknown>> | null;
  if (parameters === null || Object.keys(parameters).length === 0) return <Nothing title={words.noInput} />;
  return <ValueView value={parameters} />;
}

/** The scheduler names a worker by its id: people know it by its name. */
function StoryText({ text }: { readonly text: string }) {
  const [, before = text, worker, after] = /^(.* leased to )(\S+)( .*)$/.exec(text) ?? [];
  return worker === undefined ? (
    text
  ) : (
    <>
      {before}
      <WorkerName id={worker} />
      {after}
    </>
  );
}

function History({ detail }: { readonly detail: NodeDetail }) {
  const told = detail.story.map((line, place) => {
    const at = line.slice(0, line.indexOf(" "));
    return { key: `${place}`, at, text: line.slice(at.length + 1) };
  });
  return (
    <ol className={classes.story}>
      {told.map((one) => (
        <li key={one.key}>
          <time dateTime={one.at} title={one.at}>
            {formatClock(one.at)}
          </time>
          <span>
            <StoryText text={one.text} />
          </span>
        </li>
      ))}
    </ol>
  );
}
