/** The lines of output of a run, apart from its state: they come by the thousand. */

import { create, type StoreApi, type UseBoundStore } from "zustand";
import { api, dataOf } from "../../api/client";
import type { RunEvent, SnapshotBody } from "../../model/run/events";
import { joinLines, type LogFilter, type LogLine, linesOfEvents, linesOfStored, MAX_LINES } from "./lines";

export interface LogState {
  readonly lines: readonly LogLine[];
  /** Where the next older page begins; null: there is none. */
  readonly older: string | null;
  readonly isLoading: boolean;
  /** Lines at the beginning were let go, because more have come than a page can hold. */
  readonly isTrimmed: boolean;
  readonly error: Error | null;
  /** Lines that came since the filter was set. */
  readonly come: number;
}

export interface LogActions {
  load(filter: LogFilter): Promise<void>;
  loadOlder(): Promise<void>;
  take(events: readonly RunEvent[]): void;
}

export type LogStore = UseBoundStore<StoreApi<LogState & LogActions>>;

const PAGE = 1_000;
/** Pages of nothing but streams that are passed over to find some lines. */
const MAX_PAGES = 5;
const ENOUGH = 50;

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

export function createLogs(runId: string): LogStore {
  let filter: LogFilter | null = null;
  let turn = 0;
  /** What is being read: what comes next waits for it. Another filter waits for nothing. */
  let reading: Promise<void> = Promise.resolve();
  const fetchPage = async (cursor: string | null) => {
    if (filter === null) return { lines: [], next: null };
    const page = dataOf(
      await api.GET("/api/v1/runs/{runId}/logs", {
        params: { path: { runId }, query: { ...queryOf(filter), ...(cursor === null ? {} : { cursor }) } },
      }),
    );
    // The newest come first.
    return { lines: page.items.toReversed().flatMap(linesOfStored), next: page.nextCursor };
  };
  return create<LogState & LogActions>()((set, get) => {
    const read = async (from: string | null): Promise<void> => {
      const mine = ++turn;
      set({ isLoading: true, error: null });
      try {
        let cursor = from;
        let found: readonly LogLine[] = [];
        // Events may have told of lines before the cursor: those are passed over.
        const known = from === null ? [] : get().lines;
        const oldest = known[0]?.id ?? Number.POSITIVE_INFINITY;
        const most = MAX_PAGES + Math.ceil(known.length / PAGE);
        for (let page = 0, fresh = 0; page < most && fresh < ENOUGH; page += 1) {
          const { lines, next } = await fetchPage(cursor);
          if (mine !== turn) return;
          found = joinLines(found, lines, "oldest");
          fresh += lines.filter((line) => line.id < oldest).length;
          cursor = next;
          if (next === null) break;
        }
        set({ lines: joinLines(get().lines, found, "oldest"), older: cursor, isLoading: false });
      } catch (error) {
        if (mine === turn)
          set({ isLoading: false, error: error instanceof Error ? error : new Error(String(error)) });
      }
    };
    /** A snapshot says what was before it, but not as lines: those that nobody has told are read. */
    const catchUp = async (lastEvent: number): Promise<void> => {
      if (get().lines.length === 0) return read(null);
      const mine = turn;
      const page = await fetchPage(null).catch(() => null);
      if (mine !== turn) return;
      // The next snapshot or filter reads again.
      if (page === null) return set({ isLoading: false });
      set(({ lines, older }) => {
        const before = lines.filter((line) => line.id <= lastEvent);
        const since = lines.filter((line) => line.id > lastEvent);
        const hasGap = page.next !== null && (page.lines[0]?.id ?? 0) > (before.at(-1)?.id ?? 0);
        const all = joinLines(joinLines(hasGap ? [] : before, page.lines, "newest"), since, "newest");
        return { lines: all, older: hasGap ? page.next : older, isLoading: false };
      });
    };
    return {
      lines: [],
      older: null,
      isLoading: true,
      isTrimmed: false,
      error: null,
      come: 0,
      async load(wanted) {
        filter = wanted;
        set({ lines: [], older: null, come: 0, isTrimmed: false });
        reading = read(null);
        await reading;
      },
      async loadOlder() {
        const { older, isLoading } = get();
        if (older === null || isLoading) return;
        set({ isLoading: true });
        reading = reading.then(() => {
          // What was read before may have begun anew.
          const from = get().older;
          return from === null ? set({ isLoading: false }) : read(from);
        });
        await reading;
      },
      take(events) {
        const snapshot = events.find((event) => event.type === "run.snapshot");
        if (snapshot !== undefined) {
          const { lastEvent } = snapshot.data as SnapshotBody;
          reading = reading.then(() => catchUp(lastEvent));
        }
        const more = linesOfEvents(events);
        if (more.length > 0)
          set((state) => ({
            lines: joinLines(state.lines, more, "newest"),
            come: state.come + more.length,
            isTrimmed: state.isTrimmed || state.lines.length + more.length > MAX_LINES,
          }));
      },
    };
  });
}
