import { IconChevronRight } from "@tabler/icons-react";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, memo, useEffect, useRef, useState } from "react";
import { texts } from "../texts";
import { formatDuration, withLocalTimes } from "../values/format";
import { useRunSearch, useSelectStep } from "./runPage";
import { type Bar, selectedRow, type TimelineRow } from "./timeline";
import classes from "./timeline.module.css";
import { type Span, ticksOf } from "./timelineAxis";

const ROW = 28;
/** Marks of the axis are at least so far apart, in pixels. */
const APART = 72;

interface Props {
  readonly rows: readonly TimelineRow[];
  readonly span: Span;
  readonly width: number;
  /** Where the line of the present is; null: there is none. */
  readonly now: number | null;
  readonly onToggle: (key: string) => void;
}

/** Deeper ones stay where there is still room for a name. */
const indentOf = (row: TimelineRow): number => 12 + 20 * Math.min(row.depth, 4);
const idOf = (row: TimelineRow): string => `timeline-${row.key.replace(/[^\w-]/g, "_")}`;

/** The rows that are in sight, below an axis. Up and down select the next step. */
export function TimelineRows({ rows, span, width, now, onToggle }: Props) {
  const words = texts.runView.timeline;
  const { step, scope } = useRunSearch();
  const select = useSelectStep();
  const place = useRef<HTMLDivElement>(null);
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => place.current,
    estimateSize: () => ROW,
    overscan: 8,
    paddingStart: 24,
    scrollPaddingStart: 24,
  });
  // A step and the call of it in its own chain are two rows of the same step.
  const [chosen, setChosen] = useState("");
  const selected = selectedRow(rows, chosen, step, scope);
  const scroll = list.scrollToIndex;
  useEffect(() => {
    if (selected >= 0) scroll(selected, { align: "auto" });
  }, [selected, scroll]);
  const perMs = width / (span.end - span.start);
  const pick = (row: TimelineRow): void => {
    setChosen(row.key);
    select(row.nodeId, row.scopePath);
  };
  const onKey = (event: KeyboardEvent): void => {
    const row = rows[selected];
    const go = (to: number): void => {
      const next = rows[Math.max(0, Math.min(rows.length - 1, to))];
      if (next !== undefined) pick(next);
    };
    if (event.key === "ArrowDown") go(selected + 1);
    else if (event.key === "ArrowUp") go(selected < 0 ? 0 : selected - 1);
    else if (event.key === "ArrowRight" && row?.group?.isOpen === false) onToggle(row.key);
    else if (event.key === "ArrowLeft" && row?.group?.isOpen === true) onToggle(row.key);
    else return;
    event.preventDefault();
  };
  const active = rows[selected];
  return (
    <div
      ref={place}
      className={classes.gantt}
      role="listbox"
      aria-label={words.label}
      tabIndex={0}
      onKeyDown={onKey}
      {...(active === undefined ? {} : { "aria-activedescendant": idOf(active) })}
    >
      <div className={classes.ganttInner} style={{ height: list.getTotalSize(), width: width + 296 }}>
        <div className={classes.axis} aria-hidden="true">
          {ticksOf(span, APART / perMs).map((tick) => (
            <span key={tick} style={{ left: 200 + tick * perMs }}>
              {tick === 0 ? "0" : formatDuration(tick)}
            </span>
          ))}
        </div>
        {now !== null && (
          <div
            className={classes.nowLine}
            style={{ left: 200 + (now - span.start) * perMs }}
            aria-hidden="true"
          >
            <span>{words.now}</span>
          </div>
        )}
        {list.getVirtualItems().map((item) => {
          const row = rows[item.index];
          return row === undefined ? null : (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the list takes the keys
            // biome-ignore lint/a11y/useFocusableInteractive: the list has the focus
            <div
              key={row.key}
              id={idOf(row)}
              role="option"
              aria-selected={item.index === selected}
              className={classes.ganttRow}
              style={{ transform: `translateY(${item.start}px)` }}
              data-inner={row.depth > 0 || undefined}
              data-selected={item.index === selected || undefined}
              onClick={() => pick(row)}
            >
              <div className={classes.ganttLabel} style={{ paddingLeft: indentOf(row) }}>
                {row.group !== null && (
                  <IconChevronRight
                    size={14}
                    className={classes.folder}
                    data-open={row.group.isOpen || undefined}
                    onClick={(event) => {
                      event.stopPropagation();
                      onToggle(row.key);
                    }}
                  />
                )}
                <span title={row.label}>{row.label}</span>
                {row.group?.kind === "items" && <small>{words.group(row.group.size, row.group.ended)}</small>}
              </div>
              <Bars row={row} from={span.start} perMs={perMs} until={now ?? span.end} />
            </div>
          );
        })}
      </div>
    </div>
  );
}

interface BarsProps {
  readonly row: TimelineRow;
  readonly from: number;
  readonly perMs: number;
  readonly until: number;
}

const Bars = memo(function Bars({ row, from, perMs, until }: BarsProps) {
  const last = row.bars.at(-1);
  const ran = row.bars.filter((bar) => bar.kind === "ran");
  const took = ran.reduce((sum, bar) => sum + ((bar.end ?? until) - bar.start), 0);
  return (
    <>
      {row.bars.map((bar) => (
        <span
          key={`${bar.kind}${bar.start}`}
          className={classes.ganttBar}
          data-kind={bar.kind}
          data-status={bar.status}
          style={{
            left: 200 + (bar.start - from) * perMs,
            width: Math.max(bar.kind === "ran" ? 3 : 1, ((bar.end ?? until) - bar.start) * perMs),
          }}
          title={titleOf(bar, until)}
        />
      ))}
      {last === undefined && row.status !== null && (
        <span className={classes.ganttTail} style={{ left: 206 }}>
          {row.status}
        </span>
      )}
      {last !== undefined && (
        <span className={classes.ganttTail} style={{ left: 206 + ((last.end ?? until) - from) * perMs }}>
          {last.kind === "wait" && last.end === null
            ? withLocalTimes(last.reason ?? "", until)
            : formatDuration(took)}
        </span>
      )}
    </>
  );
});

function titleOf(bar: Bar, until: number): string {
  const words = texts.runView.timeline.bars;
  const took = formatDuration((bar.end ?? until) - bar.start);
  switch (bar.kind) {
    case "wait":
      return `${words.wait(bar.reason ?? "")} (${took})`;
    case "handing":
      return `${words.handing} (${took})`;
    case "gap":
      return `${words.gap(bar.reason ?? "")} (${took})`;
    case "ran":
      return `${words.ran(bar.attempt, bar.status)} (${took})${bar.reason === null ? "" : `: ${bar.reason}`}`;
  }
}
