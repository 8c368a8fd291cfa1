/**
 * Tidy up: positions for nodes, from left to right. The same document always gives the same positions. Positions
 * are absolute, also those of nodes inside of a container, so that a node that is moved out of it stays where it is.
 */

import { layout as arrange, Graph } from "@dagrejs/dagre";
import { CONTAINER_TYPE, type NodeDefinition, type Position } from "./definition";
import { edgesOf, nodesOf, type WorkflowDocument } from "./document";
import { BOX_BORDER, EMPTY_BOX, onGrid, type Size, USUAL_SIZE } from "./sizes";

const GAPS = { nodesep: 40, ranksep: 80, edgesep: 16 } as const;

interface Block {
  readonly size: Size;
  readonly positions: ReadonlyMap<string, Position>;
}

type Members = ReadonlyMap<string | null, readonly NodeDefinition[]>;
type SizeOf = (node: NodeDefinition) => Size;

/** `sizeOf` has the sizes as they are drawn; of a container, its size when it is empty. */
export function layoutDocument(
  document: WorkflowDocument,
  sizeOf: SizeOf = () => USUAL_SIZE,
): Map<string, Position> {
  return rounded(arranged(null, membersOf(document), pairsOf(document), sizeOf, new Set()).positions);
}

/**
 * The same for some nodes with all that is inside of them: each row of nodes with the same container is laid out anew
 * where it begins now. All other nodes stay.
 */
export function layoutChosen(
  document: WorkflowDocument,
  ids: ReadonlySet<string>,
  sizeOf: SizeOf = () => USUAL_SIZE,
): Map<string, Position> {
  const members = membersOf(document);
  const known = new Map(nodesOf(document).map((node) => [node.id, node]));
  const moved = new Map<string, Position>();
  for (const [parent, row] of members) {
    const chosen = row.filter((node) => ids.has(node.id));
    if (chosen.length < 2 || isInside(parent, ids, known)) continue;
    const part = new Map(members).set(parent, chosen);
    const { positions } = arranged(parent, part, pairsOf(document), sizeOf, new Set());
    // The frame of a container follows from its steps: what has a place of its own says where the row begins.
    const leaves = [...positions.keys()].filter((id) => !members.has(id));
    const now = cornerOf(leaves.map((id) => known.get(id)?.position ?? { x: 0, y: 0 }));
    const then = cornerOf(leaves.flatMap((id) => positions.get(id) ?? []));
    for (const [id, at] of positions) moved.set(id, { x: at.x - then.x + now.x, y: at.y - then.y + now.y });
  }
  return rounded(moved);
}

const rounded = (positions: ReadonlyMap<string, Position>): Map<string, Position> =>
  new Map([...positions].map(([id, at]) => [id, { x: onGrid(at.x), y: onGrid(at.y) }]));

const cornerOf = (places: readonly Position[]): Position => ({
  x: Math.min(...places.map((at) => at.x)),
  y: Math.min(...places.map((at) => at.y)),
});

function isInside(
  parent: string | null,
  ids: ReadonlySet<string>,
  known: ReadonlyMap<string, NodeDefinition>,
): boolean {
  const seen = new Set<string>();
  for (let at = parent; at !== null && !seen.has(at); at = known.get(at)?.parent ?? null) {
    if (ids.has(at)) return true;
    seen.add(at);
  }
  return false;
}

const pairsOf = (document: WorkflowDocument): readonly (readonly [string, string])[] =>
  edgesOf(document).map((edge) => [edge.source.node, edge.target.node] as const);

function membersOf(document: WorkflowDocument): Members {
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
  return members;
}

function arranged(
  parent: string | null,
  members: Members,
  edges: readonly (readonly [string, string])[],
  sizeOf: SizeOf,
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
      positions.set(id, {
        x: corner.x + BOX_BORDER.side + inside.x,
        y: corner.y + BOX_BORDER.top + inside.y,
      });
    }
  }
  return { size: { width, height }, positions };
}

const boxed = (size: Size): Size => ({
  width: Math.max(EMPTY_BOX.width, size.width + 2 * BOX_BORDER.side),
  height: Math.max(EMPTY_BOX.height, size.height + BOX_BORDER.top + BOX_BORDER.bottom),
});
