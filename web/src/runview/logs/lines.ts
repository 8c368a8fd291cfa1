/** Lines of output in a ring: old ones go when there are too many, and the API has them all. */

import type { components } from "../../api/schema";
import type { OutputBody, RunEvent } from "../../model/run/events";
import type { Level, LogKind } from "../search";
import { stripAnsi } from "./ansi";

export type StoredLine = components["schemas"]["LogLine"];

export interface LogLine {
  /** Once in a run: the number of its event, and its place in it. */
  readonly key: string;
  readonly id: number;
  /** What it is a part of: all that an attempt writes to a channel. */
  readonly stream: string;
  /** The pieces of the stream that it is from: the first, and the one after the last. The live stream joins pieces. */
  readonly index: number;
  readonly end: number;
  readonly at: string;
  readonly nodeId: string;
  readonly scopePath: string | null;
  readonly attempt: number;
  readonly channel: string;
  readonly level: Level;
  readonly text: string;
  readonly fields: Readonly<Record<string, unknown>> | null;
}

export const MAX_LINES = 60_000;
/** What is a log. Other channels are streams, which their steps show. */
const CHANNELS = new Set(["log", "stdout", "stderr", "dropped"]);
const LEVELS: readonly Level[] = ["debug", "info", "warning", "error"];

function levelOf(given: unknown): Level {
  const word = typeof given === "string" ? given.toLowerCase() : "";
  if (word === "warn") return "warning";
  if (word === "critical" || word === "fatal") return "error";
  return LEVELS.find((level) => level === word) ?? "info";
}

interface Piece extends Pick<OutputBody, "nodeId" | "attempt" | "channel" | "index" | "pieces"> {
  readonly text?: string | null;
  readonly dataBase64?: string | null;
  readonly scopePath?: string | null;
  readonly callId?: string | null;
  readonly metadata?: unknown;
}

function linesOfPiece(id: number, at: string, piece: Piece): readonly LogLine[] {
  if (!CHANNELS.has(piece.channel)) return [];
  const { level, ...more } = (piece.metadata ?? {}) as Readonly<Record<string, unknown>>;
  const fields = Object.keys(more).length > 0 ? more : null;
  const whole = piece.text ?? (piece.dataBase64 == null ? "" : `(${piece.dataBase64.length} base64)`);
  // A structured line is one; of the others several may come together.
  const texts = piece.channel === "log" ? [whole] : whole.replace(/\n$/, "").split("\n");
  const { nodeId, scopePath, callId, attempt, channel } = piece;
  // What says that output is missing has no place in it: each of those is a stream of its own.
  const stream = [nodeId, scopePath, callId, attempt, channel === "dropped" ? id : channel].join(" ");
  return texts.map((text, place) => ({
    key: `${id}.${place}`,
    id,
    stream,
    index: piece.index,
    end: piece.index + (piece.pieces ?? 1),
    at,
    nodeId: piece.nodeId,
    scopePath: piece.scopePath ?? null,
    attempt: piece.attempt,
    channel: piece.channel,
    level: levelOf(level),
    text,
    fields,
  }));
}

export const linesOfStored = (line: StoredLine): readonly LogLine[] =>
  linesOfPiece(line.id, line.occurredAt, line);

/** The lines in events of a run. Output within a snapshot is left out: the API is asked for that. */
export function linesOfEvents(events: readonly RunEvent[]): readonly LogLine[] {
  return events.flatMap((event) =>
    event.type === "node.result.delta"
      ? linesOfPiece(event.id ?? 0, event.occurredAt ?? "", event.data as OutputBody)
      : [],
  );
}

export interface LogFilter {
  readonly kind: LogKind;
  readonly level: Level;
  readonly nodeId: string | null;
  readonly scopePath: string | null;
  readonly text: string;
}

export function filterLines(lines: readonly LogLine[], filter: LogFilter): readonly LogLine[] {
  const text = filter.text.toLowerCase();
  const least = LEVELS.indexOf(filter.level);
  return lines.filter(
    (line) =>
      (filter.kind === "all" || line.channel === filter.kind) &&
      LEVELS.indexOf(line.level) >= least &&
      (filter.nodeId === null ||
        line.nodeId === filter.nodeId ||
        line.scopePath?.startsWith(`${filter.nodeId}:`)) &&
      (filter.scopePath === null || (line.scopePath ?? "").startsWith(filter.scopePath)) &&
      (text === "" || stripAnsi(line.text).toLowerCase().includes(text)),
  );
}

/** Older lines before those that are known. Of a stream that is known from a piece on, that piece is not needed again. */
function olderOf(known: readonly LogLine[], more: readonly LogLine[]): readonly LogLine[] {
  const begins = new Map<string, number>();
  for (const line of known) if (!begins.has(line.stream)) begins.set(line.stream, line.index);
  return more.filter((line) => line.index < (begins.get(line.stream) ?? Number.POSITIVE_INFINITY));
}

/** How far streams are known: the ends of their last lines. */
function endsOf(known: readonly LogLine[], streams: ReadonlySet<string>): Map<string, number> {
  const ends = new Map<string, number>();
  for (let place = known.length - 1; place >= 0 && ends.size < streams.size; place -= 1) {
    const line = known[place] as LogLine;
    if (streams.has(line.stream) && !ends.has(line.stream)) ends.set(line.stream, line.end);
  }
  return ends;
}

/** Newer lines behind those that are known. Joined pieces of which some are known take the place of those. */
function newerOf(
  known: readonly LogLine[],
  more: readonly LogLine[],
): readonly [readonly LogLine[], readonly LogLine[]] {
  const ends = endsOf(known, new Set(more.map((line) => line.stream)));
  const fresh = more.filter((line) => line.end > (ends.get(line.stream) ?? 0));
  const cuts = new Map<string, number>();
  for (const line of fresh)
    if (line.index < (ends.get(line.stream) ?? 0) && !cuts.has(line.stream))
      cuts.set(line.stream, line.index);
  if (cuts.size === 0) return [known, fresh];
  return [known.filter((line) => line.index < (cuts.get(line.stream) ?? Number.POSITIVE_INFINITY)), fresh];
}

/** Both in order, each line once. What is older than the ring holds goes, unless it was asked for just now. */
export function joinLines(
  known: readonly LogLine[],
  more: readonly LogLine[],
  keeps: "newest" | "oldest",
): readonly LogLine[] {
  if (more.length === 0) return known;
  const [before, after] = keeps === "oldest" ? [olderOf(known, more), known] : newerOf(known, more);
  if (before.length === 0 && after === known) return known;
  if (after.length === 0 && before === known) return known;
  const all = [...before, ...after];
  if ((after[0]?.id ?? 0) < (before.at(-1)?.id ?? 0)) all.sort((one, other) => one.id - other.id);
  if (all.length <= MAX_LINES) return all;
  return keeps === "newest" ? all.slice(-MAX_LINES) : all.slice(0, MAX_LINES);
}
