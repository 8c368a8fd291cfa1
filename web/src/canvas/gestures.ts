/** What somebody did with the pointer, in terms of the document. */

import type { Connection } from "@xyflow/react";
import type { Position } from "../model/definition";
import type { OpenEnd } from "../model/wiring";
import type { FlowNode } from "./flow";

/** A node as it is drawn, in absolute positions. */
export interface Drawn {
  readonly id: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly kind: "step" | "container" | "note" | "frame";
}

export interface Move {
  /** What was dragged itself. */
  readonly ids: readonly string[];
  /** Where that is now, with all that is inside of it. */
  readonly positions: ReadonlyMap<string, Position>;
  readonly drawn: readonly Drawn[];
}

export interface CanvasEdits {
  readonly onMove: (move: Move) => void;
  readonly onConnect: (connection: Connection) => void;
  /** Null: the end was dropped on the empty canvas. */
  readonly onReconnect: (edge: string, connection: Connection | null) => void;
  /** The wire was dropped on a step that cannot take it. */
  readonly onWireRefused: (reason: string) => void;
  readonly onWireDropped: (open: OpenEnd, at: { readonly x: number; readonly y: number }) => void;
}

const USUAL = { width: 224, height: 88 } as const;

export function drawnNodes(all: readonly FlowNode[]): readonly Drawn[] {
  const byId = new Map(all.map((node) => [node.id, node]));
  return all.map((node) => {
    const { x, y } = cornerOf(node, byId);
    const width = node.measured?.width ?? node.width ?? USUAL.width;
    const height = node.measured?.height ?? node.height ?? USUAL.height;
    return { id: node.id, x, y, width, height, kind: node.type ?? "step" };
  });
}

/** Inside of containers React Flow counts from the corner of the container. */
function cornerOf(node: FlowNode, byId: ReadonlyMap<string, FlowNode>): Position {
  const parent = node.parentId === undefined ? undefined : byId.get(node.parentId);
  if (parent === undefined) return node.position;
  const outer = cornerOf(parent, byId);
  return { x: outer.x + node.position.x, y: outer.y + node.position.y };
}

/** A drag has ended. */
export function moveOf(all: readonly FlowNode[], dragged: readonly FlowNode[]): Move {
  // The nodes of a drag are newer than those that were drawn last.
  const fresh = new Map(dragged.map((node) => [node.id, node]));
  const now = all.map((node) => fresh.get(node.id) ?? node);
  const drawn = drawnNodes(now);
  const parents = new Map(now.map((node) => [node.id, node.parentId]));
  const isMoved = (id: string | undefined): boolean =>
    id !== undefined && (fresh.has(id) || isMoved(parents.get(id)));
  const positions = new Map<string, Position>();
  for (const { id, x, y } of drawn) if (isMoved(id)) positions.set(id, { x, y });
  return { ids: [...fresh.keys()], positions, drawn };
}
