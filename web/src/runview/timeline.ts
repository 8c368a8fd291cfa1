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
  /** How far it is inside of others. */
  readonly depth: number;
  readonly bars: readonly Bar[];
  readonly status: string | null;
  readonly group: Group | null;
}

/** What is below a row: the items of a map or a container, or the calls in the chain around a step. */
export interface Group {
  readonly kind: "items" | "calls";
  readonly size: number;
  readonly ended: number;
  readonly isOpen: boolean;
}

interface Track {
  readonly nodeId: string;
  readonly scopePath: string | null;
  bars: Bar[];
  status: string | null;
}

const at = (time: string | undefined): number | null => (time === undefined ? null : Date.parse(time));
const ENDED = new Set(["succeeded", "failed", "skipped", "cancelled"]);

interface Tracks {
  readonly steps: ReadonlyMap<string, Track>;
  /** By the step with middleware around it: each link of the chain that was called, the outer ones first. */
  readonly calls: ReadonlyMap<string, ReadonlyMap<string, Track>>;
}

/** The bars of each node, from the entries of all. */
function tracksOf(entries: readonly TimelineEntry[]): Tracks {
  const steps = new Map<string, Track>();
  const calls = new Map<string, Map<string, Track>>();
  for (const entry of entries) {
    const inside = entry.scopePath === undefined ? "" : `${entry.scopePath}/`;
    if (entry.callId === undefined) take(trackIn(steps, `${inside}${entry.nodeId}`, entry), entry);
    else {
      const host = `${inside}${entry.hostNodeId ?? entry.nodeId}`;
      const chain = calls.get(host) ?? new Map<string, Track>();
      calls.set(host, chain);
      take(trackIn(chain, entry.nodeId, entry), entry);
    }
  }
  return { steps, calls };
}

function trackIn(tracks: Map<string, Track>, key: string, entry: TimelineEntry): Track {
  const known = tracks.get(key);
  if (known !== undefined) return known;
  const track: Track = { nodeId: entry.nodeId, scopePath: entry.scopePath ?? null, bars: [], status: null };
  tracks.set(key, track);
  return track;
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
  /** Groups that somebody has opened or closed. Items are closed at first, the calls of a chain are open. */
  readonly toggled: ReadonlySet<string>;
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
  const { steps, calls } = tracksOf(entries);
  const inside = new Map<string, [string, Track][]>();
  const outer = new Map<string, Track>();
  for (const [key, track] of steps) {
    if (track.scopePath === null) outer.set(key, track);
    else {
      const owner = ownerOf(track.scopePath);
      inside.set(owner, [...(inside.get(owner) ?? []), [key, track]]);
      if (!outer.has(owner)) outer.set(owner, { nodeId: owner, scopePath: null, bars: [], status: null });
    }
  }
  const rows: TimelineRow[] = [];
  const add = (key: string, track: Track, row: Pick<TimelineRow, "label" | "depth" | "bars" | "group">) => {
    const bars = options.hidesWaits ? row.bars.filter((bar) => bar.kind === "ran") : row.bars;
    const { nodeId, scopePath, status } = track;
    rows.push({ key, nodeId, scopePath, status, ...row, bars });
  };
  /** A step, and the chain around it: a link of it is inside of the one before. */
  const addStep = (key: string, track: Track, label: string, depth: number): void => {
    const chain = [...(calls.get(key) ?? [])];
    const isOpen = chain.length > 0 && !options.toggled.has(key);
    const links = chain.map(([, link]) => link);
    add(key, track, { label, depth, bars: track.bars, group: groupOf("calls", links, isOpen) });
    if (!isOpen) return;
    for (const [place, [nodeId, link]] of chain.entries()) {
      const own = { label: options.labelOf(nodeId), depth: depth + 1 + place, bars: link.bars, group: null };
      add(`${key}#${nodeId}`, link, own);
    }
  };
  for (const [key, track] of outer) {
    const members = inside.get(key) ?? [];
    const label = options.labelOf(track.nodeId);
    if (members.length === 0) {
      addStep(key, track, label, 0);
      continue;
    }
    const isOpen = options.toggled.has(key);
    const bars = [...track.bars.filter((one) => one.kind === "wait"), around(track, members)];
    const tracks = members.map(([, member]) => member);
    add(key, track, { label, depth: 0, bars, group: groupOf("items", tracks, isOpen) });
    if (!isOpen) continue;
    for (const [inner, member] of members)
      addStep(inner, member, `${itemsOf(member.scopePath ?? "")} ${options.labelOf(member.nodeId)}`, 1);
  }
  return rows;
}

function groupOf(kind: Group["kind"], tracks: readonly Track[], isOpen: boolean): Group | null {
  if (tracks.length === 0) return null;
  return {
    kind,
    size: tracks.length,
    ended: tracks.filter((one) => ENDED.has(one.status ?? "")).length,
    isOpen,
  };
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

/** The row of what is selected: the one that was chosen, if it is a row of that step, or else the first of the step. */
export function selectedRow(
  rows: readonly TimelineRow[],
  chosen: string,
  step: string | undefined,
  scope: string | undefined,
): number {
  const isOf = (row: TimelineRow): boolean => row.nodeId === step && (row.scopePath ?? undefined) === scope;
  const own = rows.findIndex((row) => row.key === chosen && isOf(row));
  return own >= 0 ? own : rows.findIndex(isOf);
}
