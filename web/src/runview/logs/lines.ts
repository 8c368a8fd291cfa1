/** Lines of output, as events and the API have them. */

import type { components } from "../../api/schema";
import type { OutputBody, RunEvent } from "../../model/run/events";
import type { Level, LogKind } from "../search";
import { stripAnsi } from "./ansi";

export type StoredLine = components["schemas"]["LogLine"];

export interface LogLine {
  /** Once in a run: the number of its event, and its place in it. */
  readonly key: string;
  readonly id: number;
  readonly at: string;
  readonly nodeId: string;
  readonly scopePath: string | null;
  readonly attempt: number;
  readonly channel: string;
  readonly level: Level;
  readonly text: string;
  readonly fields: Readonly<Record<string, unknown>> | null;
}

/** What is a log. Other channels are streams, which their steps show. */
const CHANNELS = new Set(["log", "stdout", "stderr", "dropped"]);
const LEVELS: readonly Level[] = ["debug", "info", "warning", "error"];

function levelOf(given: unknown): Level {
  const word = typeof given === "string" ? given.toLowerCase() : "";
  if (word === "warn") return "warning";
  if (word === "critical" || word === "fatal") return "error";
  return LEVELS.find((level) => level === word) ?? "info";
}

interface Piece extends Pick<OutputBody, "nodeId" | "attempt" | "channel"> {
  readonly text?: string | null;
  readonly dataBase64?: string | null;
  readonly scopePath?: string | null;
  readonly metadata?: unknown;
}

function linesOfPiece(id: number, at: string, piece: Piece): readonly LogLine[] {
  if (!CHANNELS.has(piece.channel)) return [];
  const { level, ...more } = (piece.metadata ?? {}) as Readonly<Record<string, unknown>>;
  const fields = Object.keys(more).length > 0 ? more : null;
  const whole = piece.text ?? (piece.dataBase64 == null ? "" : `(${piece.dataBase64.length} base64)`);
  // A structured line is one; of the others several may come together.
  const texts = piece.channel === "log" ? [whole] : whole.replace(/\n$/, "").split("\n");
  return texts.map((text, place) => ({
    key: `${id}.${place}`,
    id,
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
