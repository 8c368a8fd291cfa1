/** Align and distribute: new corners for boxes on the canvas. */

import type { Position } from "./definition";
import type { Size } from "./sizes";

export interface Box extends Position, Size {
  readonly id: string;
}

export const ALIGNMENTS = ["left", "centre", "right", "top", "middle", "bottom"] as const;
export type Alignment = (typeof ALIGNMENTS)[number];
export const AXES = ["across", "down"] as const;
export type Axis = (typeof AXES)[number];

interface Side {
  readonly at: "x" | "y";
  readonly size: "width" | "height";
  /** How much of the size is before the line: none for a left edge, all for a right one. */
  readonly share: number;
}

const SIDES: Readonly<Record<Alignment, Side>> = {
  left: { at: "x", size: "width", share: 0 },
  centre: { at: "x", size: "width", share: 0.5 },
  right: { at: "x", size: "width", share: 1 },
  top: { at: "y", size: "height", share: 0 },
  middle: { at: "y", size: "height", share: 0.5 },
  bottom: { at: "y", size: "height", share: 1 },
};

const cornerOf = ({ x, y }: Box, at: "x" | "y", value: number): Position => ({
  x,
  y,
  [at]: Math.round(value),
});

/** All to one line: that of the outermost, or the middle of all. */
export function aligned(boxes: readonly Box[], to: Alignment): Map<string, Position> {
  const { at, size, share } = SIDES[to];
  const first = Math.min(...boxes.map((box) => box[at]));
  const last = Math.max(...boxes.map((box) => box[at] + box[size]));
  const line = first + (last - first) * share;
  return new Map(boxes.map((box) => [box.id, cornerOf(box, at, line - box[size] * share)]));
}

/** The same gap between each two. The outermost stay where they are. */
export function distributed(boxes: readonly Box[], axis: Axis): Map<string, Position> {
  const [at, size] = axis === "across" ? (["x", "width"] as const) : (["y", "height"] as const);
  const row = boxes.toSorted((one, other) => one[at] - other[at] || one[size] - other[size]);
  const [first, last] = [row[0], row.at(-1)];
  if (first === undefined || last === undefined || row.length < 3) return new Map();
  const taken = row.reduce((sum, box) => sum + box[size], 0);
  const gap = (last[at] + last[size] - first[at] - taken) / (row.length - 1);
  const places = new Map<string, Position>();
  let next = first[at];
  for (const box of row) {
    places.set(box.id, cornerOf(box, at, next));
    next += box[size] + gap;
  }
  return places;
}
