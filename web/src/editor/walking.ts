/** Where the arrow keys lead: along the edges, and up and down between steps that stand in a column. */

import type { NodeDefinition, Position } from "../model/definition";
import { edgesOf, nodesOf, type WorkflowDocument } from "../model/document";

export type Direction = "left" | "right" | "up" | "down";

const placeOf = (node: NodeDefinition): Position => node.position ?? { x: 0, y: 0 };

/** Middlewares are drawn on their hosts: nothing leads to them. */
function drawnNodes(document: WorkflowDocument): readonly NodeDefinition[] {
  const wrapping = new Set(nodesOf(document).flatMap((node) => node.middlewares ?? []));
  return nodesOf(document).filter((node) => !wrapping.has(node.id));
}

/** The step that a key leads to; null if there is none. Without a step to begin at, the first one. */
export function neighbourOf(document: WorkflowDocument, from: string | null, to: Direction): string | null {
  const nodes = drawnNodes(document);
  const here = nodes.find((node) => node.id === from);
  if (here === undefined) return firstOf(nodes)?.id ?? null;
  if (to === "left" || to === "right") {
    const linked = linkedTo(document, here.id, to);
    return nearest(
      nodes.filter((node) => linked.has(node.id)),
      here,
    );
  }
  const sign = to === "up" ? -1 : 1;
  const beside = nodes.filter((node) => sign * (placeOf(node).y - placeOf(here).y) > 0);
  return nearest(beside, here);
}

function linkedTo(document: WorkflowDocument, id: string, to: "left" | "right"): ReadonlySet<string> {
  const found = new Set<string>();
  for (const { source, target } of edgesOf(document)) {
    if (to === "right" && source.node === id) found.add(target.node);
    if (to === "left" && target.node === id) found.add(source.node);
  }
  return found;
}

function firstOf(nodes: readonly NodeDefinition[]): NodeDefinition | undefined {
  return nodes.toSorted(
    (one, other) => placeOf(one).x - placeOf(other).x || placeOf(one).y - placeOf(other).y,
  )[0];
}

function nearest(nodes: readonly NodeDefinition[], to: NodeDefinition): string | null {
  const distance = (node: NodeDefinition): number =>
    // What is beside counts more: a column is walked through before another one is entered.
    Math.abs(placeOf(node).x - placeOf(to).x) * 2 + Math.abs(placeOf(node).y - placeOf(to).y);
  return nodes.toSorted((one, other) => distance(one) - distance(other))[0]?.id ?? null;
}

/** The steps themselves with all that leads to them, or all that they lead to. */
export function reachOf(
  document: WorkflowDocument,
  ids: Iterable<string>,
  to: "upstream" | "downstream",
): Set<string> {
  const next = new Map<string, string[]>();
  for (const { source, target } of edgesOf(document)) {
    const [from, onto] = to === "upstream" ? [target.node, source.node] : [source.node, target.node];
    const known = next.get(from);
    if (known === undefined) next.set(from, [onto]);
    else known.push(onto);
  }
  const found = new Set(ids);
  for (const id of found) for (const one of next.get(id) ?? []) found.add(one);
  return found;
}
