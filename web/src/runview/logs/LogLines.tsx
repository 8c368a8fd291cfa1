import { Button } from "@mantine/core";
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useLayoutEffect, useRef, useState } from "react";
import { texts } from "../../texts";
import { formatClock } from "../../values/format";
import { JsonTree } from "../../values/JsonTree";
import { useDefinition } from "../runPage";
import shared from "../shared.module.css";
import stepClasses from "../step/step.module.css";
import { itemsOf } from "../timeline";
import { ansiSpans } from "./ansi";
import type { LogLine } from "./lines";
import classes from "./logs.module.css";

const ROW = 20;
/** Above the first line and below the last one. */
const MARGIN = 4;
/** So near to the end counts as the end. */
const END = 32;
/** So near to the beginning the next page is asked for. */
const BEGINNING = 200;

interface Props {
  readonly lines: readonly LogLine[];
  readonly canLoadOlder: boolean;
  readonly onOlder: () => void;
}

/** The lines in sight. It follows the end until somebody scrolls up, and then says how many have come. */
export function LogLines({ lines, canLoadOlder, onOlder }: Props) {
  const words = texts.runView.logs;
  const place = useRef<HTMLElement>(null);
  const [isFollowing, setIsFollowing] = useState(true);
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const lastSeen = useRef(0);
  const lastTop = useRef(0);
  const list = useVirtualizer({
    count: lines.length,
    getScrollElement: () => place.current,
    getItemKey: (index) => lines[index]?.key ?? index,
    estimateSize: () => ROW,
    overscan: 20,
    paddingStart: MARGIN,
    paddingEnd: MARGIN,
  });
  const newest = lines.at(-1)?.id ?? 0;
  if (isFollowing) lastSeen.current = newest;
  const scroll = list.scrollToIndex;
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new line is what moves the end
  useEffect(() => {
    if (isFollowing && lines.length > 0) scroll(lines.length - 1, { align: "end" });
  }, [newest, lines.length, isFollowing, scroll]);
  // Older lines come in above: what is in sight stays where it is.
  const first = useRef(lines[0]?.key);
  useLayoutEffect(() => {
    const before = first.current;
    first.current = lines[0]?.key;
    const box = place.current;
    if (before === undefined || before === lines[0]?.key || isFollowing || box === null) return;
    const added = lines.findIndex((line) => line.key === before);
    if (added > 0) box.scrollTop += added * ROW;
  }, [lines, isFollowing]);
  const come = isFollowing ? 0 : lines.filter((line) => line.id > lastSeen.current).length;
  return (
    <div className={stepClasses.logBox}>
      <section
        ref={place}
        className={classes.logLines}
        aria-label={words.lines}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard scrolls what has the focus
        tabIndex={0}
        onScroll={({ currentTarget: box }) => {
          const isAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < END;
          // Lines may have come since the list went to its end: only somebody who scrolls up leaves it.
          const isUp = lastTop.current - box.scrollTop > END;
          lastTop.current = box.scrollTop;
          if (isAtEnd || isUp) setIsFollowing(isAtEnd);
          if (!isAtEnd && box.scrollTop < BEGINNING && canLoadOlder) onOlder();
        }}
      >
        <div style={{ height: list.getTotalSize(), position: "relative" }}>
          {list.getVirtualItems().map((item) => {
            const line = lines[item.index];
            return line === undefined ? null : (
              <div
                key={item.key}
                ref={list.measureElement}
                data-index={item.index}
                className={classes.logRow}
                style={{ transform: `translateY(${item.start}px)` }}
              >
                <Line
                  line={line}
                  isOpen={opened.has(line.key)}
                  onToggle={() =>
                    setOpened((before) => {
                      const after = new Set(before);
                      if (!after.delete(line.key)) after.add(line.key);
                      return after;
                    })
                  }
                />
              </div>
            );
          })}
        </div>
      </section>
      {!isFollowing && (
        <Button
          className={shared.toEnd}
          size="compact-xs"
          aria-label={words.toEnd}
          onClick={() => setIsFollowing(true)}
        >
          {come > 0 ? words.newLines(come) : "↓"}
        </Button>
      )}
    </div>
  );
}

interface LineProps {
  readonly line: LogLine;
  readonly isOpen: boolean;
  readonly onToggle: () => void;
}

const Line = memo(function Line({ line, isOpen, onToggle }: LineProps) {
  const { labelOf } = useDefinition();
  const words = texts.runView.logs;
  return (
    <>
      <div className={classes.logLine} data-level={line.level} data-channel={line.channel}>
        <time dateTime={line.at} title={line.at}>
          {formatClock(line.at, true)}
        </time>
        <span className={classes.logLevel}>{line.channel === "log" ? line.level : line.channel}</span>
        <span className={classes.logStep} title={labelOf(line.nodeId)}>
          {labelOf(line.nodeId)}
          {line.scopePath !== null && itemsOf(line.scopePath)}
        </span>
        <span className={classes.logText}>
          {line.attempt > 1 && <span className={classes.logField}>attempt={line.attempt} </span>}
          {ansiSpans(line.text).map((span, place) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the spans of a line never change
            <span key={place} data-ansi={span.color ?? undefined} data-bold={span.isBold || undefined}>
              {span.text}
            </span>
          ))}
          {line.fields !== null && (
            <button
              type="button"
              className={classes.fieldsButton}
              aria-expanded={isOpen}
              aria-label={words.fields}
              onClick={onToggle}
            >
              {isOpen ? "−" : `+${Object.keys(line.fields).length}`}
            </button>
          )}
        </span>
      </div>
      {isOpen && line.fields !== null && (
        <div className={classes.logFields}>
          <JsonTree value={line.fields} maxHeight={200} />
        </div>
      )}
    </>
  );
});
