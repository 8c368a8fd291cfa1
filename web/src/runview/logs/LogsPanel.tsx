import { ActionIcon, Button, SegmentedControl, Select, TextInput, Tooltip } from "@mantine/core";
import { IconChevronDown, IconChevronUp, IconDownload, IconSearch, IconX } from "@tabler/icons-react";
import { useCallback, useEffect, useMemo } from "react";
import { Failure } from "../../app/PanelStates";
import type { RunEvent } from "../../model/run/events";
import { useRun, useRunEvents, useRunReader } from "../../stores/run";
import { texts } from "../../texts";
import { formatCount } from "../../values/format";
import { Nothing } from "../Panel";
import { useDefinition, useRunId, useRunSearch, useSetSearch } from "../runPage";
import { LEVELS, type Level, LOG_KINDS, type LogKind } from "../search";
import shared from "../shared.module.css";
import { useTyped } from "../typed";
import { LogLines } from "./LogLines";
import { filterLines, type LogFilter } from "./lines";
import classes from "./logs.module.css";
import { createLogs, MAX_LINES } from "./store";

interface Props {
  readonly isOpen: boolean;
  readonly onToggle: () => void;
}

/** What the steps have written, with filters; the end follows what comes. */
export function LogsPanel({ isOpen, onToggle }: Props) {
  const words = texts.runView.logs;
  const runId = useRunId();
  const search = useRunSearch();
  const set = useSetSearch();
  const { labelOf } = useDefinition();
  const [text, setText] = useTyped(search.q ?? "", (next) => set({ q: next === "" ? undefined : next }));
  const ofStep = search.logsOf === "all" ? undefined : search.step;
  const filter = useMemo<LogFilter>(
    () => ({
      kind: search.log ?? "all",
      level: search.level ?? "debug",
      nodeId: ofStep ?? null,
      scopePath: ofStep === undefined ? null : (search.scope ?? null),
      text: search.q ?? "",
    }),
    [search.log, search.level, ofStep, search.scope, search.q],
  );
  return (
    <section className={classes.logs} aria-label={words.title}>
      <div className={classes.logTools}>
        <strong>{words.title}</strong>
        <SegmentedControl
          size="xs"
          aria-label={words.kind}
          value={filter.kind}
          onChange={(next) => set({ log: next === "all" ? undefined : (next as LogKind) })}
          data={LOG_KINDS.map((one) => ({ value: one, label: words.kinds[one] }))}
        />
        <Select
          aria-label={words.level}
          data={LEVELS.map((one) => ({ value: one, label: words.levels[one] }))}
          value={filter.level}
          onChange={(next) => set({ level: next === "debug" || next === null ? undefined : (next as Level) })}
          allowDeselect={false}
          w={104}
        />
        {search.step !== undefined &&
          (ofStep === undefined ? (
            <Button variant="default" size="compact-xs" onClick={() => set({ logsOf: undefined })}>
              {words.onlyStep}
            </Button>
          ) : (
            <span className={classes.chip}>
              {words.step(labelOf(ofStep))}
              <ActionIcon
                size={16}
                variant="transparent"
                color="gray"
                aria-label={words.clearStep}
                onClick={() => set({ logsOf: "all" })}
              >
                <IconX size={12} />
              </ActionIcon>
            </span>
          ))}
        <TextInput
          className={classes.logSearch}
          leftSection={<IconSearch size={14} />}
          placeholder={words.find}
          aria-label={words.find}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
        />
        <span className={shared.grow} />
        <Tooltip label={words.download}>
          <ActionIcon
            component="a"
            href={downloadOf(runId, filter)}
            download
            variant="subtle"
            color="gray"
            aria-label={words.download}
          >
            <IconDownload size={16} />
          </ActionIcon>
        </Tooltip>
        <Tooltip label={isOpen ? words.collapse : words.expand}>
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label={isOpen ? words.collapse : words.expand}
            aria-expanded={isOpen}
            onClick={onToggle}
          >
            {isOpen ? <IconChevronDown size={16} /> : <IconChevronUp size={16} />}
          </ActionIcon>
        </Tooltip>
      </div>
      {isOpen && <Lines runId={runId} filter={filter} />}
    </section>
  );
}

function downloadOf(runId: string, filter: LogFilter): string {
  const query = new URLSearchParams();
  if (filter.kind !== "all") query.set("channel", filter.kind);
  if (filter.level !== "debug") query.set("level", filter.level);
  if (filter.nodeId !== null && filter.scopePath === null) query.set("nodeId", filter.nodeId);
  if (filter.scopePath !== null) query.set("scope", filter.scopePath);
  if (filter.text !== "") query.set("text", filter.text);
  return `/api/v1/runs/${encodeURIComponent(runId)}/logs/file?${query}`;
}

interface LinesProps {
  readonly runId: string;
  readonly filter: LogFilter;
}

function Lines({ runId, filter }: LinesProps) {
  const words = texts.runView.logs;
  const set = useSetSearch();
  const isOver = useRun((run) => run.finishedAt !== null);
  const useLogs = useMemo(() => createLogs(runId), [runId]);
  const { lines, older, isLoading, isTrimmed, error, load, loadOlder, take, stop } = useLogs();
  useRunEvents(useCallback((events: readonly RunEvent[]) => take(events), [take]));
  const read = useRunReader();
  useEffect(() => {
    void load(filter, read().lastEvent);
    return stop;
  }, [load, stop, filter, read]);
  const shown = useMemo(() => filterLines(lines, filter), [lines, filter]);
  const isNarrow = filter.kind !== "all" || filter.level !== "debug" || filter.text !== "";
  const isFiltered = isNarrow || filter.nodeId !== null;
  const isOnlyStep = !isNarrow && filter.nodeId !== null;
  if (error !== null && lines.length === 0)
    return <Failure title={words.failed} error={error} retry={() => void load(filter, read().lastEvent)} />;
  if (shown.length === 0 && !isLoading) {
    if (older !== null)
      return (
        <Nothing title={words.noMatch}>
          <Button variant="default" size="compact-xs" onClick={() => void loadOlder()}>
            {words.older}
          </Button>
        </Nothing>
      );
    if (!isFiltered) return <Nothing title={isOver ? words.never : words.none} />;
    if (isOnlyStep)
      return (
        <Nothing title={words.stepSilent}>
          <Button variant="default" size="compact-xs" onClick={() => set({ logsOf: "all" })}>
            {words.allSteps}
          </Button>
        </Nothing>
      );
    return (
      <Nothing title={words.noMatch}>
        <Button
          variant="default"
          size="compact-xs"
          onClick={() => set({ log: undefined, level: undefined, logsOf: "all", q: undefined })}
        >
          {words.clear}
        </Button>
      </Nothing>
    );
  }
  return (
    <>
      {isTrimmed && <p className={classes.trimmed}>{words.trimmed(formatCount(MAX_LINES))}</p>}
      <LogLines lines={shown} canLoadOlder={older !== null && !isLoading} onOlder={() => void loadOlder()} />
    </>
  );
}
