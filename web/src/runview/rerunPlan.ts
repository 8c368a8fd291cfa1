/** What a re-run repeats and what it takes over, as far as a definition tells. The scheduler decides. */

import type { EdgeDefinition, NodeDefinition } from "../model/definition";

export interface RerunPlan {
  readonly kept: readonly string[];
  readonly repeated: readonly string[];
}

export type RerunMode = "all" | "failed" | "from";

interface Given {
  readonly nodes: readonly NodeDefinition[];
  readonly edges: readonly EdgeDefinition[];
  readonly mode: RerunMode;
  /** Where to begin, if `mode` is `from`; and nodes with other parameters. */
  readonly from: readonly string[];
  readonly hasSucceeded: (nodeId: string) => boolean;
}

const READS = /\bnodes(?:\.([A-Za-z_]\w*)|\[(?:'((?:[^'\\]|\\.)*)'|\\?"((?:[^"\\]|\\.)*)\\?")\])/g;

/** The nodes that the expressions of a node name. */
function readsOf(node: NodeDefinition, byName: ReadonlyMap<string, string>): readonly string[] {
  const text = JSON.stringify([node.parameters, node.when, node.map]);
  return [...text.matchAll(READS)].flatMap(([, word, single, double]) => {
    const name = (word ?? single ?? double ?? "").replaceAll("\\", "");
    return byName.get(name) ?? [];
  });
}

export function planRerun({ nodes, edges, mode, from, hasSucceeded }: Given): RerunPlan {
  const outer = nodes.filter((node) => node.parent == null);
  const isMiddleware = new Set(nodes.flatMap((node) => node.middlewares ?? []));
  const steps = outer.filter((node) => !isMiddleware.has(node.id));
  const ids = new Set(steps.map((node) => node.id));
  const again = new Set<string>();
  for (const node of steps) if (mode === "all" || !hasSucceeded(node.id)) again.add(node.id);
  for (const id of from) again.add(id);
  if (mode !== "all") spread(again, followersOf(nodes, edges));
  return {
    kept: steps.filter((node) => !again.has(node.id)).map((node) => node.id),
    repeated: [...again].filter((id) => ids.has(id)),
  };
}

/** What is made of a node's result: behind its edges, in expressions, or around it. */
function followersOf(
  nodes: readonly NodeDefinition[],
  edges: readonly EdgeDefinition[],
): ReadonlyMap<string, readonly string[]> {
  const byName = new Map(
    nodes.flatMap((node) => [[node.id, node.id] as const, [node.label ?? node.id, node.id] as const]),
  );
  const followers = new Map<string, string[]>();
  const add = (before: string, after: string): void => {
    followers.set(before, [...(followers.get(before) ?? []), after]);
  };
  for (const { source, target } of edges) add(source.node, target.node);
  for (const node of nodes) {
    for (const read of readsOf(node, byName)) add(read, node.id);
    if (node.parent != null) add(node.id, node.parent);
    for (const middleware of node.middlewares ?? []) add(middleware, node.id);
  }
  return followers;
}

function spread(reached: Set<string>, followers: ReadonlyMap<string, readonly string[]>): void {
  const left = [...reached];
  for (let one = left.pop(); one !== undefined; one = left.pop())
    for (const next of followers.get(one) ?? [])
      if (!reached.has(next)) {
        reached.add(next);
        left.push(next);
      }
}
