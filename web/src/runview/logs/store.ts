/** The lines of output of a run, apart from its state: they come by the thousand. */

import { create, type StoreApi, type UseBoundStore } from "zustand";
import { api, dataOf } from "../../api/client";
import type { RunEvent } from "../../model/run/events";
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
        await read(null);
      },
      async loadOlder() {
        const { older, isLoading } = get();
        if (older !== null && !isLoading) await read(older);
      },
      take(events) {
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
