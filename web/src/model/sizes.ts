/** How large steps are drawn, apart from the layout, whose library is loaded when somebody tidies up. */

import type { NodePorts } from "./ports";

export interface Size {
  readonly width: number;
  readonly height: number;
}

export const GRID = 8;
export const USUAL_SIZE: Size = { width: 224, height: 88 };
/** A container without steps; with steps it is at least as large. */
export const EMPTY_BOX: Size = { width: 288, height: 152 };
/** What a container has around its steps. */
export const BOX_BORDER = { top: 48, side: 24, bottom: 24 } as const;

/** What the head of a step needs, and each row of ports below it. */
const HEAD = 46;
const ROW = 18;

/** The size of a step before it is drawn, by the ports that have a row. */
export function sizeWith(ports: NodePorts): Size {
  const rowsOf = (side: NodePorts["inputs"]): number =>
    [...side.values()].filter((port) => port.kind === "data" || !port.isImplied).length;
  const rows = Math.max(rowsOf(ports.inputs), rowsOf(ports.outputs));
  return { width: USUAL_SIZE.width, height: Math.max(USUAL_SIZE.height, HEAD + ROW * rows) };
}

export const onGrid = (value: number): number => Math.round(value / GRID) * GRID;
