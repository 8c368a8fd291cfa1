/** The time that a timeline shows, and the marks of its axis. */

import type { TimelineRow } from "./timeline";

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
