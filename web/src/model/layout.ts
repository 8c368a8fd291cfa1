/**
 * Tidy up: positions for all nodes, from left to right. The same document always gives the same positions. Positions
 * are absolute, also those of nodes inside of a container, so that a node that is moved out of it stays where it is.
 */

import { layout as arrange, Graph } from "@dagrejs/dagre";
import { CONTAINER_TYPE, type NodeDefinition, type Position } from "./definition";
import { edgesOf, nodesOf, type WorkflowDocument } from "./document";
import { GRID, type Size, USUAL_SIZE } from "./sizes";

const BORDER = { top: 48, side: 24, bottom: 24 } as const;
const GAPS = { nodesep: 40, ranksep: 80, edgesep: 16 } as const;

interface Block {
  readonly size: Size;
  readonly positions: ReadonlyMap<string, Position>;
}

const onGrid = (value: number): number => Math.round(value / GRID) * GRID;

/** `sizeOf` has the sizes as they are drawn; of a container, its size when it is empty. */
export function layoutDocument(
  document: WorkflowDocument,
  sizeOf: (node: NodeDefinition) => Size = () => USUAL_SIZE,
): Map<string, Position> {
  const wrappers = new Set(nodesOf(document).flatMap((node) => node.middlewares ?? []));
  const members = new Map<string | null, NodeDefinition[]>();
  const known = new Set(nodesOf(document).map((node) => node.id));
  for (const node of nodesOf(document)) {
    if (wrappers.has(node.id)) continue; // it is drawn on its host
    const parent = node.parent != null && known.has(node.parent) ? node.parent : null;
    const row = members.get(parent);
    if (row === undefined) members.set(parent, [node]);
    else row.push(node);
  }
  const edges = edgesOf(document).map((edge) => [edge.source.node, edge.target.node] as const);
  const block = arranged(null, members, edges, sizeOf, new Set());
  return new Map([...block.positions].map(([id, at]) => [id, { x: onGrid(at.x), y: onGrid(at.y) }]));
}

function arranged(
  parent: string | null,
  members: ReadonlyMap<string | null, readonly NodeDefinition[]>,
  edges: readonly (readonly [string, string])[],
  sizeOf: (node: NodeDefinition) => Size,
  around: ReadonlySet<string>,
): Block {
  const nodes = members.get(parent) ?? [];
  const graph = new Graph();
  graph.setGraph({ rankdir: "LR", ...GAPS });
  graph.setDefaultEdgeLabel(() => ({}));
  const inner = new Map<string, Block>();
  for (const node of nodes) {
    const isBox = node.type === CONTAINER_TYPE && members.has(node.id) && !around.has(node.id);
    const block = isBox ? arranged(node.id, members, edges, sizeOf, new Set([...around, node.id])) : null;
    if (block !== null) inner.set(node.id, block);
    graph.setNode(node.id, block === null ? { ...sizeOf(node) } : boxed(block.size));
  }
  for (const [source, target] of edges) {
    if (source !== target && graph.hasNode(source) && graph.hasNode(target)) graph.setEdge(source, target);
  }
  arrange(graph);
  const positions = new Map<string, Position>();
  let [width, height] = [0, 0];
  for (const node of nodes) {
    const at = graph.node(node.id) as Position & Size;
    const corner = { x: at.x - at.width / 2, y: at.y - at.height / 2 };
    positions.set(node.id, corner);
    [width, height] = [Math.max(width, corner.x + at.width), Math.max(height, corner.y + at.height)];
    for (const [id, inside] of inner.get(node.id)?.positions ?? []) {
      positions.set(id, { x: corner.x + BORDER.side + inside.x, y: corner.y + BORDER.top + inside.y });
    }
  }
  return { size: { width, height }, positions };
}

const boxed = (size: Size): Size => ({
  width: size.width + 2 * BORDER.side,
  height: size.height + BORDER.top + BORDER.bottom,
});
