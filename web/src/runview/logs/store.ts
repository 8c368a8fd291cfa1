/**
 * The lines of output of a run, apart from its state: they come by the thousand.
 *
 * Rule 1: `seen` is the last event that was told. Output up to it is read from the API, output after it is told by
 *         events: each line comes one way, so that none is there twice or not at all.
 * Rule 2: a snapshot stands for events that nobody tells. Output between `seen` and the snapshot is read.
 * Rule 3: `lines` has no gap. If too much is missing to be read at once, what is before it goes, and can be read again.
 */

import { create, type StoreApi, type UseBoundStore } from "zustand";
import { ApiError, api, dataOf } from "../../api/client";
import type { RunEvent, SnapshotBody } from "../../model/run/events";
import { type LogFilter, type LogLine, linesOfEvents, linesOfStored } from "./lines";

export interface LogState {
  readonly lines: readonly LogLine[];
  /** Where the next older page begins; null: there is none. */
  readonly older: string | null;
  readonly isLoading: boolean;
  /** Lines at the beginning were let go, because more have come than a page can hold. */
  readonly isTrimmed: boolean;
  readonly error: Error | null;
}

export interface LogActions {
  /** Begin with what the page knows of the run: `seen` is its last event, 0 before the first. */
  load(filter: LogFilter, seen: number): Promise<void>;
  loadOlder(): Promise<void>;
  /** Nobody looks any more: nothing is read again. */
  stop(): void;
  take(events: readonly RunEvent[]): void;
}

export type LogStore = UseBoundStore<StoreApi<LogState & LogActions>>;

/** What a page holds. The file that can be downloaded has all lines. */
export const MAX_LINES = 60_000;
const PAGE = 1_000;
/** Pages of nothing but streams that are passed over to find some lines, or that are read to close a gap. */
const MAX_PAGES = 5;
const ENOUGH = 50;
const RETRY_MS = 2_000;

function queryOf(filter: LogFilter) {
  return {
    limit: PAGE,
    newest: true,
    level: filter.level,
    ...(filter.kind === "all" ? {} : { channel: filter.kind }),
    // Of a map or a container the lines of what is inside belong to it: they are chosen here, not there.
    ...(filter.scopePath === null ? {} : { scope: filter.scopePath }),
    ...(filter.text === "" ? {} : { text: filter.text }),
  };
}

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));

/** Whether the same request may succeed later: nobody has answered, or the scheduler cannot serve now. */
const isPassing = (error: unknown): boolean => !(error instanceof ApiError) || error.status >= 500;

/** Lines that were read, in order, and where older ones begin. */
interface Found {
  readonly lines: readonly LogLine[];
  readonly older: string | null;
}

type Place = { readonly before: number } | { readonly cursor: string };

/** Reads back from a place until `isEnough`, but not without end. */
async function readBack(
  runId: string,
  filter: LogFilter,
  from: Place,
  isEnough: (lines: readonly LogLine[]) => boolean,
): Promise<Found> {
  let place = from;
  let lines: readonly LogLine[] = [];
  for (let count = 1; ; count += 1) {
    const page = dataOf(
      await api.GET("/api/v1/runs/{runId}/logs", {
        params: { path: { runId }, query: { ...queryOf(filter), ...place } },
      }),
    );
    // The newest come first.
    lines = [...page.items.toReversed().flatMap(linesOfStored), ...lines];
    const older = page.nextCursor;
    if (older === null || count === MAX_PAGES || isEnough(lines)) return { lines, older };
    place = { cursor: older };
  }
}

export function createLogs(runId: string): LogStore {
  let filter: LogFilter | null = null;
  let seen = 0;
  /** Counts filters: what was read for another one is not used. */
  let turn = 0;
  /** One thing is read after the other. Another filter waits for nothing. */
  let reading: Promise<void> = Promise.resolve();
  const queue = (read: (isWanted: () => boolean, filter: LogFilter) => Promise<void>): Promise<void> => {
    const mine = turn;
    const wanted = filter;
    const isWanted = (): boolean => mine === turn;
    reading = reading.then(async () => {
      if (wanted !== null && isWanted()) await read(isWanted, wanted);
    });
    return reading;
  };
  return create<LogState & LogActions>()((set, get) => {
    const add = (more: readonly LogLine[]): void =>
      set(({ lines, older, isTrimmed }) => {
        const all = [...lines, ...more];
        if (all.length <= MAX_LINES) return { lines: all, older, isTrimmed };
        return { lines: all.slice(-MAX_LINES), older: null, isTrimmed: true };
      });
    const readOlder = (from: () => Place | null): Promise<void> => {
      set({ isLoading: true, error: null });
      return queue(async (isWanted, wanted) => {
        const place = from();
        if (place === null) return set({ isLoading: false });
        try {
          const found = await readBack(runId, wanted, place, (lines) => lines.length >= ENOUGH);
          if (!isWanted()) return;
          // If lines were let go meanwhile, what was found is not next to what is left.
          if (!get().isTrimmed)
            set(({ lines }) => ({ lines: [...found.lines, ...lines], older: found.older }));
          set({ isLoading: false });
        } catch (error) {
          if (isWanted()) set({ isLoading: false, error: asError(error) });
        }
      });
    };
    const readBetween = (after: number, last: number): Promise<void> =>
      queue(async (isWanted, wanted) => {
        const reaches = (lines: readonly LogLine[]): boolean => (lines[0]?.id ?? last) <= after;
        for (;;)
          try {
            const found = await readBack(runId, wanted, { before: last + 1 }, reaches);
            if (!isWanted()) return;
            const isWhole = found.older === null || reaches(found.lines);
            const { lines } = get();
            const before = isWhole ? lines.filter((line) => line.id <= after) : [];
            set({ lines: before, ...(isWhole ? {} : { older: found.older, isTrimmed: false }) });
            add(found.lines.filter((line) => !isWhole || line.id > after));
            return add(lines.filter((line) => line.id > last));
          } catch (error) {
            if (!isWanted()) return;
            if (!isPassing(error)) return set({ error: asError(error) });
            // The stream is back before the rest of the API.
            await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
            if (!isWanted()) return;
          }
      });
    return {
      lines: [],
      older: null,
      isLoading: true,
      isTrimmed: false,
      error: null,
      async load(wanted, last) {
        filter = wanted;
        seen = last;
        turn += 1;
        reading = Promise.resolve();
        set({ lines: [], older: null, isTrimmed: false, isLoading: true, error: null });
        // Before the first event there is no place to read up to: the snapshot will say it.
        if (last > 0) await readOlder(() => ({ before: last + 1 }));
      },
      async loadOlder() {
        const { lines, older, isLoading } = get();
        if (older === null || isLoading) return;
        if (lines.length >= MAX_LINES) return set({ older: null, isTrimmed: true });
        // What is read before it may begin anew.
        await readOlder(() => {
          const cursor = get().older;
          return cursor === null ? null : { cursor };
        });
      },
      stop() {
        turn += 1;
      },
      take(events) {
        const told: RunEvent[] = [];
        for (const event of events) {
          if (event.type !== "run.snapshot") {
            // Whoever has begun to follow between an event and the snapshot is told by the snapshot.
            if (seen > 0) told.push(event);
            if (seen > 0) seen = Math.max(seen, event.id ?? 0);
            continue;
          }
          const { lastEvent } = event.data as SnapshotBody;
          if (seen === 0) void readOlder(() => ({ before: lastEvent + 1 }));
          else if (lastEvent > seen) void readBetween(seen, lastEvent);
          seen = Math.max(seen, lastEvent);
        }
        const more = linesOfEvents(told);
        if (more.length > 0) add(more);
      },
    };
  });
}
