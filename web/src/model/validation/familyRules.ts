/** Which node is inside which container, and which wraps which. */

import { CONTAINER_TYPE, type NodeDefinition } from "../definition";
import type { Resolved } from "./nodeRules";
import type { Problems } from "./problems";

const MAX_CONTAINER_DEPTH = 64;

export interface Family {
  readonly parents: ReadonlyMap<number, number>;
  /** The host of each middleware. */
  readonly hosts: ReadonlyMap<number, number>;
}

export function checkFamily(
  nodes: readonly NodeDefinition[],
  index: ReadonlyMap<string, number>,
  types: readonly Resolved[],
  problems: Problems,
): Family {
  const parents = new Map<number, number>();
  nodes.forEach((node, place) => {
    if (node.parent == null) return;
    const pointer = `/nodes/${place}/parent`;
    const parent = index.get(node.parent);
    if (parent === undefined) problems.add(pointer, "UNKNOWN_NODE", "there is no node with this id");
    else if (nodes[parent]?.type !== CONTAINER_TYPE) {
      problems.add(pointer, "INVALID", `only a node of type ${CONTAINER_TYPE} can hold others`);
    } else parents.set(place, parent);
  });
  checkDepth(parents, problems);
  const hosts = checkChains(nodes, index, types, parents, problems);
  types.forEach((found, place) => {
    if (found !== null && found !== "carried" && found.middleware && !hosts.has(place)) {
      problems.add(
        `/nodes/${place}`,
        "INVALID",
        `${found.type} wraps another node: name it in its middlewares`,
      );
    }
  });
  return { parents, hosts };
}

function checkDepth(parents: ReadonlyMap<number, number>, problems: Problems): void {
  const depths = new Map<number, number>();
  for (const start of parents.keys()) {
    const walked = new Set<number>();
    let here: number | undefined = start;
    while (here !== undefined && !depths.has(here) && !walked.has(here)) {
      walked.add(here);
      here = parents.get(here);
    }
    if (here !== undefined && walked.has(here)) {
      problems.add(`/nodes/${here}/parent`, "CYCLE", "the container is inside itself");
    }
    let depth = here === undefined ? -1 : (depths.get(here) ?? -1);
    for (const place of [...walked].reverse()) {
      depth += 1;
      depths.set(place, depth);
      if (depth === MAX_CONTAINER_DEPTH + 1) {
        problems.add(
          `/nodes/${place}/parent`,
          "LIMIT",
          `the node is inside of more than ${MAX_CONTAINER_DEPTH} containers`,
        );
      }
    }
  }
}

function checkChains(
  nodes: readonly NodeDefinition[],
  index: ReadonlyMap<string, number>,
  types: readonly Resolved[],
  parents: ReadonlyMap<number, number>,
  problems: Problems,
): Map<number, number> {
  const hosts = new Map<number, number>();
  nodes.forEach((host, place) => {
    (host.middlewares ?? []).forEach((id, number) => {
      const pointer = `/nodes/${place}/middlewares/${number}`;
      const middleware = index.get(id);
      if (middleware === undefined) {
        problems.add(pointer, "UNKNOWN_NODE", "there is no node with this id");
        return;
      }
      const node = nodes[middleware] as NodeDefinition & { resources?: object | null };
      const found = types[middleware];
      const reason = chainProblem(node, found ?? null, place, middleware, hosts, parents);
      if (reason !== null) problems.add(pointer, "INVALID", reason);
      if (node.resources != null) {
        problems.add(`/nodes/${middleware}/resources`, "INVALID", "a middleware asks for no resources");
      }
      if (!hosts.has(middleware)) hosts.set(middleware, place);
    });
  });
  return hosts;
}

function chainProblem(
  node: NodeDefinition,
  found: Resolved,
  host: number,
  middleware: number,
  hosts: ReadonlyMap<number, number>,
  parents: ReadonlyMap<number, number>,
): string | null {
  if (found !== null && found !== "carried" && found.executedBy === "scheduler") {
    return `a node that the scheduler carries out wraps none: ${found.type}`;
  }
  if (middleware === host || (node.middlewares ?? []).length > 0)
    return "a middleware cannot have middlewares of its own";
  if (hosts.has(middleware)) return "a middleware wraps one host only";
  if (parents.get(middleware) !== parents.get(host))
    return "a middleware is in the same container as its host";
  if (node.map != null) return "a middleware runs when its host does and has no map";
  return null;
}
