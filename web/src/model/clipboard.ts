/** Copy and paste as JSON text: another tab, another browser or a person's own editor can take part. */

import type { EdgeDefinition, NodeDefinition, Position } from "./definition";
import { appendAt, edgesOf, nodesOf, type WorkflowDocument } from "./document";
import { moveNodes, withMembers } from "./edits/nodes";
import { removeIn, setIn } from "./json/edits";
import { isParent, type JsonNode, JsonTextError, nodeAt, parseNode, plainOf } from "./json/tree";

export const CLIPBOARD_KIND = "astraflow.nodes";

/** The nodes with their edges among each other, their members and their middlewares, in the bytes of the document. */
export function copyNodes(document: WorkflowDocument, ids: Iterable<string>): string {
  const chosen = withMembers(document, ids);
  const nodes = nodesOf(document);
  for (const node of nodes)
    if (chosen.has(node.id)) for (const one of node.middlewares ?? []) chosen.add(one);
  const text = (list: string, isMeant: (place: number) => boolean): string => {
    const found = nodeAt(document.root, [list]);
    const children = isParent(found) ? found.children : [];
    return children
      .filter((_, place) => isMeant(place))
      .map((child) => child.value.text)
      .join(",");
  };
  const edges = edgesOf(document);
  const isInside = (edge: EdgeDefinition | undefined): boolean =>
    edge !== undefined && chosen.has(edge.source.node) && chosen.has(edge.target.node);
  const rows = text("nodes", (place) => chosen.has(nodes[place]?.id ?? ""));
  return `{"kind":"${CLIPBOARD_KIND}","nodes":[${rows}],"edges":[${text("edges", (place) => isInside(edges[place]))}]}`;
}

export interface PasteOptions {
  readonly newId: () => string;
  readonly offset: Position;
  /** The container to paste into. */
  readonly parent?: string | null;
}

export interface Pasted {
  readonly document: WorkflowDocument;
  readonly ids: readonly string[];
}

const UUID = /[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}/g;

/**
 * Paste what was copied, with new ids wherever the old ones are named: in edges, chains, parents and expressions. Null
 * if the text is no such thing. References to nodes that were not copied are left out.
 */
export function pasteNodes(document: WorkflowDocument, text: string, options: PasteOptions): Pasted | null {
  const copied = readCopy(text);
  if (copied === null) return null;
  const known = copied.nodes.map((node) => (plainOf(node) as unknown as NodeDefinition).id);
  const fresh = new Map(known.map((id) => [id, options.newId()]));
  const renamed = (node: JsonNode): JsonNode =>
    parseNode(node.text.replace(UUID, (id) => fresh.get(id) ?? id));
  let edited = document;
  const positions = new Map<string, Position>();
  for (const node of copied.nodes) {
    const placed = detached(renamed(node), new Set(fresh.values()), options.parent ?? null, document);
    const view = plainOf(placed) as unknown as NodeDefinition;
    edited = appendAt(edited, ["nodes"], { node: placed });
    const at = view.position ?? { x: 0, y: 0 };
    positions.set(view.id, { x: at.x + options.offset.x, y: at.y + options.offset.y });
  }
  for (const edge of copied.edges) edited = appendAt(edited, ["edges"], { node: withoutId(renamed(edge)) });
  return { document: moveNodes(edited, positions), ids: [...fresh.values()] };
}

function readCopy(text: string): { nodes: JsonNode[]; edges: JsonNode[] } | null {
  let root: JsonNode;
  try {
    root = parseNode(text);
  } catch (error) {
    if (error instanceof JsonTextError) return null;
    throw error;
  }
  const kind = nodeAt(root, ["kind"]);
  if (kind === undefined || plainOf(kind) !== CLIPBOARD_KIND) return null;
  const list = (name: string): JsonNode[] => {
    const found = nodeAt(root, [name]);
    return isParent(found) ? found.children.map((child) => child.value) : [];
  };
  const nodes = list("nodes").filter(
    (node) => typeof (plainOf(node) as { id?: unknown } | null)?.id === "string",
  );
  return nodes.length > 0 ? { nodes, edges: list("edges") } : null;
}

function detached(
  node: JsonNode,
  here: ReadonlySet<string>,
  parent: string | null,
  document: WorkflowDocument,
): JsonNode {
  const view = plainOf(node) as unknown as NodeDefinition;
  let made = node;
  if (view.parent == null || !here.has(view.parent)) {
    made =
      parent === null
        ? removeIn(made, ["parent"])
        : setIn(made, ["parent"], { value: parent }, document.style, 2);
  }
  for (const field of ["onFailure", "onCancel"] as const) {
    const target = view[field];
    if (target != null && !here.has(target)) made = removeIn(made, [field]);
  }
  return made;
}

const withoutId = (edge: JsonNode): JsonNode => removeIn(edge, ["id"]);

/** Copy and paste in one step. */
export function duplicateNodes(
  document: WorkflowDocument,
  ids: readonly string[],
  options: Omit<PasteOptions, "parent">,
): Pasted {
  const parents = new Set(
    nodesOf(document)
      .filter((node) => ids.includes(node.id))
      .map((node) => node.parent ?? null),
  );
  const parent = parents.size === 1 ? [...parents][0] : null;
  const pasted = pasteNodes(document, copyNodes(document, ids), { ...options, parent: parent ?? null });
  return pasted ?? { document, ids: [] };
}
