import { ActionIcon, Button, Checkbox, SegmentedControl, Tooltip } from "@mantine/core";
import { useElementSize, useLocalStorage } from "@mantine/hooks";
import { IconMinus, IconPlus } from "@tabler/icons-react";
import { useEffect, useMemo, useRef, useState } from "react";
import { Panel } from "../app/PanelStates";
import { usePause, useRun } from "../stores/run";
import { texts } from "../texts";
import { useNow } from "./clock";
import { Nothing } from "./Panel";
import { MAX_ENTRIES, useTimeline } from "./queries";
import { useDefinition, useRunId } from "./runPage";
import classes from "./shared.module.css";
import { TimelineRows } from "./TimelineRows";
import { type TimelineEntry, timelineRows } from "./timeline";
import timelineClasses from "./timeline.module.css";
import { flattened, spanOf } from "./timelineAxis";

const LABELS = 200;
/** Room for what stands behind the last bar. */
const TAIL = 96;

export function TimelineTab() {
  const runId = useRunId();
  const { isPaused } = usePause();
  const isActive = useRun((run) => run.lastEvent > 0 && run.finishedAt === null) && !isPaused;
  const isOver = useRun((run) => run.finishedAt !== null);
  const query = useTimeline(runId, isActive);
  const { refetch } = query;
  const wasActive = useRef(false);
  wasActive.current ||= isActive;
  // What came after the last time of asking belongs to it as well.
  useEffect(() => {
    if (isOver && wasActive.current) void refetch();
  }, [isOver, refetch]);
  return (
    <Panel query={query}>
      {({ entries, isWhole }) => <Timeline entries={entries} isActive={isActive} isWhole={isWhole} />}
    </Panel>
  );
}

interface Props {
  readonly entries: readonly TimelineEntry[];
  readonly isActive: boolean;
  readonly isWhole: boolean;
}

/** What happened when: a row for each step, its attempts side by side, and why it waited. */
function Timeline({ entries, isActive, isWhole }: Props) {
  const words = texts.runView.timeline;
  const { labelOf } = useDefinition();
  const [mode, setMode] = useLocalStorage<"timed" | "flat">({
    key: "astraflow-timeline-mode",
    defaultValue: "timed",
    getInitialValueInEffect: false,
  });
  const [hidesWaits, setHidesWaits] = useState(false);
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  const [zoom, setZoom] = useState(1);
  const { ref, width } = useElementSize();
  const now = useNow(isActive, 500);
  const rows = useMemo(
    () => timelineRows(entries, { labelOf, toggled, hidesWaits }),
    [entries, labelOf, toggled, hidesWaits],
  );
  const drawn = useMemo(() => {
    const start = spanOf(rows, now).start;
    return mode === "timed" ? rows : rows.map((row) => flattened(row, start));
  }, [rows, mode, now]);
  const span = spanOf(drawn, mode === "timed" ? now : spanOf(rows, now).start + 1);
  const room = Math.max(120, (width - LABELS - TAIL) * zoom);
  const toggle = (key: string): void =>
    setToggled((before) => {
      const after = new Set(before);
      if (!after.delete(key)) after.add(key);
      return after;
    });
  return (
    <div className={timelineClasses.timeline} ref={ref}>
      <div className={classes.tools}>
        <SegmentedControl
          size="xs"
          aria-label={words.mode}
          value={mode}
          onChange={(next) => setMode(next as "timed" | "flat")}
          data={[
            { value: "timed", label: words.timed },
            { value: "flat", label: words.flat },
          ]}
        />
        <Checkbox
          size="xs"
          label={words.hideWaits}
          checked={hidesWaits}
          onChange={(event) => setHidesWaits(event.currentTarget.checked)}
        />
        <span className={classes.grow} />
        {!isWhole && <span className={classes.dim}>{words.truncated(MAX_ENTRIES)}</span>}
        <Button variant="default" size="compact-xs" onClick={() => setZoom(1)}>
          {words.fit}
        </Button>
        <Tooltip label={words.zoomOut}>
          <ActionIcon
            variant="default"
            size={24}
            aria-label={words.zoomOut}
            onClick={() => setZoom((z) => Math.max(1, z / 1.5))}
          >
            <IconMinus size={14} />
          </ActionIcon>
        </Tooltip>
        <Tooltip label={words.zoomIn}>
          <ActionIcon
            variant="default"
            size={24}
            aria-label={words.zoomIn}
            onClick={() => setZoom((z) => Math.min(200, z * 1.5))}
          >
            <IconPlus size={14} />
          </ActionIcon>
        </Tooltip>
      </div>
      {drawn.length === 0 ? (
        <Nothing title={words.empty} />
      ) : (
        <TimelineRows
          rows={drawn}
          span={span}
          width={room}
          now={mode === "timed" && isActive ? now : null}
          onToggle={toggle}
        />
      )}
    </div>
  );
}
