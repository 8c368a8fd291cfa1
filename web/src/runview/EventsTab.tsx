import { TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useDeferredValue, useEffect, useMemo, useRef, useState } from "react";
import { Failure } from "../app/PanelStates";
import type { RunEvent, SnapshotBody } from "../model/run/events";
import { useRun, useRunEvents, useRunReader } from "../stores/run";
import { texts } from "../texts";
import { formatClock, formatCount } from "../values/format";
import { JsonTree } from "../values/JsonTree";
import { Space } from "../values/TableView";
import { readStoredEvents } from "./eventLog";
import { eventWords, nodeIdOf } from "./eventWords";
import { Nothing } from "./Panel";
import { useDefinition, useRunId, useSelectStep } from "./runPage";
import shared from "./shared.module.css";
import classes from "./tables.module.css";
import timelineClasses from "./timeline.module.css";

const ROW = 26;
/** Beyond that the oldest go: this is a view, not the store. */
const MAX_EVENTS = 50_000;

interface Stored {
  readonly events: readonly RunEvent[];
  readonly isReading: boolean;
  readonly error: Error | null;
}

/** The events of the run: those that are stored, and then those that come. */
function useEvents(runId: string): Stored & { readonly again: () => void } {
  const [known, setKnown] = useState<Stored>({ events: [], isReading: true, error: null });
  const [turn, setTurn] = useState(0);
  const read = useRunReader();
  const take = useCallback((more: readonly RunEvent[]) => {
    setKnown((before) => {
      const last = before.events.at(-1)?.id ?? 0;
      const fresh = more.filter((event) => (event.id ?? 0) > last && event.type !== "run.snapshot");
      return fresh.length === 0
        ? before
        : { ...before, events: [...before.events, ...fresh].slice(-MAX_EVENTS) };
    });
  }, []);
  const isKnown = useRun((run) => run.lastEvent > 0);
  const waiting = useRef<RunEvent[] | null>([]);
  const last = useRef(0);
  last.current = known.events.at(-1)?.id ?? 0;
  useRunEvents(
    useCallback(
      (events: readonly RunEvent[]) => {
        const snapshot = events.find((event) => event.type === "run.snapshot")?.data as
          | SnapshotBody
          | undefined;
        // A snapshot stands for events that nobody has told: they are read again.
        if (waiting.current === null && (snapshot?.lastEvent ?? 0) > last.current + 1)
          setTurn((before) => before + 1);
        // What comes while the stored ones are read waits for its turn.
        if (waiting.current === null) take(events);
        else waiting.current.push(...events);
      },
      [take],
    ),
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: another turn reads anew
  useEffect(() => {
    if (!isKnown) return;
    const stop = new AbortController();
    waiting.current = [];
    setKnown({ events: [], isReading: true, error: null });
    void readStoredEvents(runId, read().lastEvent, take, stop.signal)
      .then(() => null)
      .catch((error: unknown) => (error instanceof Error ? error : new Error(String(error))))
      .then((error) => {
        if (stop.signal.aborted) return;
        take(waiting.current ?? []);
        waiting.current = null;
        setKnown((before) => ({ ...before, isReading: false, error }));
      });
    return () => stop.abort();
  }, [runId, take, turn, read, isKnown]);
  return { ...known, again: () => setTurn((before) => before + 1) };
}

export function EventsTab() {
  const words = texts.runView.events;
  const runId = useRunId();
  const { labelOf } = useDefinition();
  const { events, isReading, error, again } = useEvents(runId);
  const [text, setText] = useState("");
  const wanted = useDeferredValue(text).toLowerCase();
  const rows = useMemo(() => {
    if (wanted === "") return events;
    return events.filter((event) => {
      const node = nodeIdOf(event);
      const name = node === null ? "" : labelOf(node);
      return `${event.id} ${event.type} ${name} ${eventWords(event)}`.toLowerCase().includes(wanted);
    });
  }, [events, wanted, labelOf]);
  if (error !== null && events.length === 0)
    return <Failure title={texts.failed.panel} error={error} retry={again} />;
  return (
    <div className={timelineClasses.tablePanel}>
      <div className={shared.tools}>
        <TextInput
          leftSection={<IconSearch size={14} />}
          placeholder={words.filter}
          aria-label={words.filter}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
        />
        <span className={shared.dim}>
          {isReading ? words.loading(events.length) : formatCount(rows.length)}
          {events.length === MAX_EVENTS && ` · ${words.cut(MAX_EVENTS)}`}
        </span>
      </div>
      {rows.length === 0 && !isReading ? <Nothing title={words.none} /> : <EventTable rows={rows} />}
    </div>
  );
}

function EventTable({ rows }: { readonly rows: readonly RunEvent[] }) {
  const words = texts.runView.events;
  const { labelOf } = useDefinition();
  const select = useSelectStep();
  const [opened, setOpened] = useState<number | null>(null);
  const place = useRef<HTMLElement>(null);
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => place.current,
    estimateSize: () => ROW,
    overscan: 12,
  });
  const shown = list.getVirtualItems();
  const detail = rows.find((row) => row.id === opened);
  return (
    <>
      <section
        ref={place}
        className={classes.tableBox}
        aria-label={words.label}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard scrolls what has the focus
        tabIndex={0}
      >
        <table className={classes.table} data-kind="events" aria-rowcount={rows.length}>
          <thead>
            <tr>
              <th>{words.number}</th>
              <th>{words.time}</th>
              <th>{words.type}</th>
              <th>{words.step}</th>
              <th>{words.what}</th>
            </tr>
          </thead>
          <tbody>
            {(shown[0]?.start ?? 0) > 0 && <Space height={shown[0]?.start ?? 0} />}
            {shown.map((item) => {
              const event = rows[item.index];
              if (event === undefined) return null;
              const node = nodeIdOf(event);
              return (
                <tr
                  key={item.key}
                  data-selected={event.id === opened || undefined}
                  onClick={() => setOpened(event.id === opened ? null : (event.id ?? null))}
                >
                  <td className={shared.number}>
                    <button type="button" className={classes.rowLink} aria-expanded={event.id === opened}>
                      {event.id}
                    </button>
                  </td>
                  <td title={event.occurredAt}>
                    {event.occurredAt !== undefined && formatClock(event.occurredAt, true)}
                  </td>
                  <td>{event.type}</td>
                  <td>
                    {node !== null && (
                      <button
                        type="button"
                        className={classes.rowLink}
                        onClick={(click) => {
                          click.stopPropagation();
                          select(node, (event.data as { scopePath?: string }).scopePath ?? null);
                        }}
                      >
                        {labelOf(node)}
                      </button>
                    )}
                  </td>
                  <td>{eventWords(event)}</td>
                </tr>
              );
            })}
            <Space height={Math.max(0, list.getTotalSize() - (shown.at(-1)?.end ?? 0))} />
          </tbody>
        </table>
      </section>
      {detail !== undefined && (
        <div className={classes.eventDetail}>
          <JsonTree value={detail.data} maxHeight={180} />
        </div>
      )}
    </>
  );
}
