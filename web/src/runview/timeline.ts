/** The entries of a timeline as rows with bars. Times are milliseconds; an open end is null. */

import type { components } from "../api/schema";

export type TimelineEntry = components["schemas"]["TimelineEntry"];

export type BarKind = "wait" | "handing" | "ran" | "gap";

export interface Bar {
  readonly kind: BarKind;
  readonly start: number;
  readonly end: number | null;
  /** Of an attempt: where it stands or how it ended. */
  readonly status: string;
  readonly attempt: number | null;
  readonly reason: string | null;
  readonly workerId: string | null;
}

export interface TimelineRow {
  readonly key: string;
  readonly nodeId: string;
  readonly scopePath: string | null;
  readonly label: string;
  readonly depth: 0 | 1;
  readonly bars: readonly Bar[];
  readonly status: string | null;
  /** Of a map or a container: what is inside. */
  readonly group: { readonly size: number; readonly ended: number; readonly isOpen: boolean } | null;
}

interface Track {
  readonly nodeId: string;
  readonly scopePath: string | null;
  bars: Bar[];
  status: string | null;
}

const at = (time: string | undefined): number | null => (time === undefined ? null : Date.parse(time));
const ENDED = new Set(["succeeded", "failed", "skipped", "cancelled"]);

/** The bars of each node, from the entries of all. */
function tracksOf(entries: readonly TimelineEntry[]): Map<string, Track> {
  const tracks = new Map<string, Track>();
  for (const entry of entries) {
    // Calls within the chain around a node are part of its own attempt.
    if (entry.callId !== undefined) continue;
    const key = entry.scopePath === undefined ? entry.nodeId : `${entry.scopePath}/${entry.nodeId}`;
    let track = tracks.get(key);
    if (track === undefined) {
      track = { nodeId: entry.nodeId, scopePath: entry.scopePath ?? null, bars: [], status: null };
      tracks.set(key, track);
    }
    take(track, entry);
  }
  return tracks;
}

function take(track: Track, entry: TimelineEntry): void {
  if (entry.kind === "wait") {
    const start = at(entry.since);
    if (start === null) return;
    close(track, start);
    const reason = entry.waitingFor?.detail || entry.waitingFor?.kind || null;
    track.bars.push({ ...EMPTY, kind: "wait", start, end: null, reason });
    track.status = "waiting";
  } else if (entry.kind === "attempt") {
    takeAttempt(track, entry);
  } else {
    const end = at(entry.finishedAt);
    if (end !== null) close(track, end);
    track.status = entry.status ?? track.status;
  }
}

const EMPTY = { status: "", attempt: null, reason: null, workerId: null } as const;

function takeAttempt(track: Track, entry: TimelineEntry): void {
  const dispatched = at(entry.dispatchedAt);
  const started = at(entry.startedAt);
  const finished = at(entry.finishedAt);
  const begin = dispatched ?? started;
  if (begin === null) return;
  close(track, begin);
  const more = {
    status: entry.status ?? "",
    attempt: entry.attempt ?? null,
    reason: entry.error?.message || entry.error?.code || null,
    workerId: entry.workerId ?? null,
  };
  if (dispatched !== null && (started === null || started > dispatched))
    track.bars.push({ ...more, kind: "handing", start: dispatched, end: started ?? finished });
  if (started !== null) track.bars.push({ ...more, kind: "ran", start: started, end: finished });
  const retry = at(entry.retryAt);
  if (retry !== null && finished !== null)
    track.bars.push({ ...EMPTY, kind: "gap", start: finished, end: retry, reason: more.reason });
  track.status = entry.status ?? track.status;
}

/** What was open ends where the next thing begins. A gap ends there too, if that comes earlier. */
function close(track: Track, time: number): void {
  const last = track.bars.at(-1);
  if (last === undefined) return;
  if (last.end === null || (last.kind === "gap" && last.end > time))
    track.bars[track.bars.length - 1] = { ...last, end: Math.max(last.start, time) };
}

export interface RowOptions {
  readonly labelOf: (nodeId: string) => string;
  /** Groups whose items are shown. */
  readonly open: ReadonlySet<string>;
  readonly hidesWaits: boolean;
}

/** The item numbers of a scope: `[3]`, `[3][0]`. */
export const itemsOf = (scopePath: string): string =>
  scopePath
    .split("/")
    .map((part) => `[${part.slice(part.lastIndexOf(":") + 1)}]`)
    .join("");

export const ownerOf = (scopePath: string): string => scopePath.slice(0, scopePath.indexOf(":"));

export function timelineRows(entries: readonly TimelineEntry[], options: RowOptions): readonly TimelineRow[] {
  const tracks = [...tracksOf(entries).entries()];
  const inside = new Map<string, [string, Track][]>();
  const outer = new Map<string, Track>();
  for (const [key, track] of tracks) {
    if (track.scopePath === null) outer.set(key, track);
    else {
      const owner = ownerOf(track.scopePath);
      inside.set(owner, [...(inside.get(owner) ?? []), [key, track]]);
      if (!outer.has(owner)) outer.set(owner, { nodeId: owner, scopePath: null, bars: [], status: null });
    }
  }
  const shown = (bars: readonly Bar[]): readonly Bar[] =>
    options.hidesWaits ? bars.filter((bar) => bar.kind === "ran") : bars;
  const rows: TimelineRow[] = [];
  for (const [key, track] of outer) {
    const members = inside.get(key) ?? [];
    const isOpen = options.open.has(key);
    rows.push({
      key,
      nodeId: track.nodeId,
      scopePath: null,
      label: options.labelOf(track.nodeId),
      depth: 0,
      bars: shown(
        members.length === 0
          ? track.bars
          : [...track.bars.filter((one) => one.kind === "wait"), around(track, members)],
      ),
      status: track.status,
      group:
        members.length === 0
          ? null
          : {
              size: members.length,
              ended: members.filter(([, one]) => ENDED.has(one.status ?? "")).length,
              isOpen,
            },
    });
    if (!isOpen) continue;
    for (const [inner, member] of members)
      rows.push({
        key: inner,
        nodeId: member.nodeId,
        scopePath: member.scopePath,
        label: `${itemsOf(member.scopePath ?? "")} ${options.labelOf(member.nodeId)}`,
        depth: 1,
        bars: shown(member.bars),
        status: member.status,
        group: null,
      });
  }
  return rows;
}

/** One bar around all that is inside. */
function around(track: Track, members: readonly (readonly [string, Track])[]): Bar {
  const bars = members.flatMap(([, member]) => member.bars);
  const isEnded = ENDED.has(track.status ?? "");
  const ends = bars.map((bar) => bar.end ?? Number.POSITIVE_INFINITY);
  const end = Math.max(...ends);
  const status = isEnded
    ? (track.status ?? "")
    : members.some(([, one]) => one.status === "failed")
      ? "failed"
      : "running";
  return {
    ...EMPTY,
    kind: "ran",
    start: Math.min(...bars.map((bar) => bar.start)),
    end: isEnded && Number.isFinite(end) ? end : null,
    status,
  };
}

export interface Span {
  readonly start: number;
  readonly end: number;
}

/** From the first bar to the last. Something is under way: to now. */
export function spanOf(rows: readonly TimelineRow[], now: number): Span {
  let [start, end] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const row of rows)
    for (const bar of row.bars) {
      start = Math.min(start, bar.start);
      end = Math.max(end, bar.end ?? now);
    }
  if (!Number.isFinite(start)) return { start: now, end: now + 1000 };
  return { start, end: Math.max(end, start + 10) };
}

/** Bars of a row as if each row began at the same time: durations stand side by side. */
export function flattened(row: TimelineRow, start: number): TimelineRow {
  const first = row.bars[0]?.start;
  if (first === undefined) return row;
  const shift = start - first;
  const bars = row.bars.map((bar) => ({
    ...bar,
    start: bar.start + shift,
    end: bar.end === null ? null : bar.end + shift,
  }));
  return { ...row, bars };
}

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500];
const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200, 86_400];

/** Where the axis has marks: round times, `apart` milliseconds apart at least. */
export function ticksOf(span: Span, apart: number): readonly number[] {
  const step = [...STEPS, ...SECONDS.map((one) => one * 1000)].find((one) => one >= apart) ?? 86_400_000;
  const ticks: number[] = [];
  for (let tick = 0; tick <= span.end - span.start; tick += step) ticks.push(tick);
  return ticks;
}
