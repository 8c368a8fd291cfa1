/**
 * All problems of a definition that a browser can find, with the codes and pointers of the scheduler, so that they are
 * shown at once. The scheduler decides: what it alone checks is named in `SERVER_ONLY`, and beyond that it knows other
 * versions of packages than the catalog lists, schedules and time zones, and defaults of inputs that fit no schema.
 */

import type { NodeCatalog } from "../catalog";
import type { NodeDefinition } from "../definition";
import { edgesOf, nodesOf, valueAt, type WorkflowDocument } from "../document";
import { findCycles } from "../graph";
import { nodeAt } from "../json/tree";
import { type NodePorts, portsOf } from "../ports";
import { EdgeRules, type Link } from "./edgeRules";
import { checkFamily, type Family } from "./familyRules";
import { checkNode, type Resolved } from "./nodeRules";
import { type Problem, Problems } from "./problems";
import { checkShape } from "./shape";
import { checkHead, type WorkflowHead } from "./workflowRules";

const MAX_NODES = 65_536;
const MAX_EDGES = 4 * MAX_NODES;
const MAX_MEMBERS_NAMED = 20;

export function validate(document: WorkflowDocument, catalog: NodeCatalog): readonly Problem[] {
  const problems = new Problems();
  checkShape(document.root, problems);
  if (problems.count === 0 && isWithinLimits(document, problems)) checkRules(document, catalog, problems);
  return problems.found();
}

function isWithinLimits(document: WorkflowDocument, problems: Problems): boolean {
  const [nodes, edges] = [nodesOf(document).length, edgesOf(document).length];
  problems.checkCount("/nodes", nodes, MAX_NODES, "nodes");
  problems.checkCount("/edges", edges, MAX_EDGES, "edges");
  if (nodes === 0) problems.add("/nodes", "INVALID", "there is no node to run");
  return problems.count === 0;
}

function checkRules(document: WorkflowDocument, catalog: NodeCatalog, problems: Problems): void {
  const nodes = nodesOf(document);
  const head = valueAt(document, []) as unknown as WorkflowHead;
  checkHead(head, problems);
  const index = new Map<string, number>();
  const types: Resolved[] = [];
  const ports: NodePorts[] = [];
  nodes.forEach((node, place) => {
    if (!index.has(node.id)) index.set(node.id, place);
    const parameters = nodeAt(document.root, ["nodes", place, "parameters"]);
    const found = checkNode(node, parameters, place, catalog, problems);
    types.push(found);
    ports.push(portsOf(node, found === null || found === "carried" ? undefined : found));
  });
  checkDuplicates(nodes, problems);
  const family = checkFamily(nodes, index, types, problems);
  const rules = new EdgeRules(nodes, index, types, ports, family, problems);
  rules.checkAll(edgesOf(document));
  checkBranches(nodes, index, family, rules.links, problems);
  checkOutputs(head, index, family, rules, problems);
  checkCycles(nodes, rules.links, problems);
}

function checkDuplicates(nodes: readonly NodeDefinition[], problems: Problems): void {
  const seen = new Set<string>();
  nodes.forEach((node, place) => {
    const folded = node.id.toLowerCase();
    if (seen.has(folded)) problems.add(`/nodes/${place}/id`, "DUPLICATE_ID", "two nodes have the same id");
    seen.add(folded);
  });
}

function checkOutputs(
  head: WorkflowHead,
  index: ReadonlyMap<string, number>,
  family: Family,
  rules: EdgeRules,
  problems: Problems,
): void {
  for (const [name, output] of Object.entries(head.outputs ?? {})) {
    const pointer = `/outputs/${name}/source`;
    const source = index.get(output.source.node);
    if (source === undefined)
      problems.add(`${pointer}/node`, "UNKNOWN_NODE", "there is no node with this id");
    else if (family.parents.has(source)) {
      problems.add(
        `${pointer}/node`,
        "INVALID",
        "the node is inside a container: make it an output of it first",
      );
    } else rules.output(source, output.source.port ?? null, `${pointer}/port`);
  }
}

function checkCycles(nodes: readonly NodeDefinition[], links: readonly Link[], problems: Problems): void {
  const successors: number[][] = nodes.map(() => []);
  for (const link of links) if (!link.isOuter) successors[link.source]?.push(link.target);
  for (const cycle of findCycles(successors)) {
    const members = cycle.slice(0, MAX_MEMBERS_NAMED).map((place) => nodes[place]?.id ?? "");
    problems.add(`/nodes/${cycle[0]}`, "CYCLE", "the edges go round in a circle", members);
  }
}

/** Branches that undo what nodes have done: each is apart from the rest, and undoes one node of the workflow itself. */
function checkBranches(
  nodes: readonly NodeDefinition[],
  index: ReadonlyMap<string, number>,
  family: Family,
  links: readonly Link[],
  problems: Problems,
): void {
  const owners = new Map<number, number>();
  nodes.forEach((node, owner) => {
    for (const name of ["onFailure", "onCancel"] as const) {
      const target = node[name];
      if (target == null) continue;
      const pointer = `/nodes/${owner}/${name}`;
      const root = index.get(target);
      if (root === undefined) {
        problems.add(pointer, "UNKNOWN_NODE", "there is no node with this id");
        continue;
      }
      const reason = branchProblem(owner, root, family, owners);
      if (reason === null) owners.set(root, owner);
      else problems.add(pointer, "INVALID", reason);
    }
  });
  const branches = new Map<number, number>();
  for (const root of owners.keys()) {
    const pending = [root];
    for (let here = pending.pop(); here !== undefined; here = pending.pop()) {
      if (!branches.has(here)) branches.set(here, root);
      for (const link of links)
        if (link.source === here && !branches.has(link.target)) pending.push(link.target);
    }
  }
  for (const [place, root] of branches) {
    if (links.some((link) => link.target === place && branches.get(link.source) !== root)) {
      problems.add(`/nodes/${place}`, "INVALID", "an edge leads into a branch that undoes a node");
    }
    if (nodes[place]?.onFailure || nodes[place]?.onCancel) {
      problems.add(`/nodes/${place}`, "INVALID", "the node undoes another, and is not undone itself");
    }
  }
}

function branchProblem(
  owner: number,
  root: number,
  family: Family,
  owners: ReadonlyMap<number, number>,
): string | null {
  if (root === owner) return "a node cannot undo itself";
  if (family.parents.has(owner) || family.parents.has(root))
    return "nodes inside of a container are not undone";
  if (family.hosts.has(owner) || family.hosts.has(root))
    return "a middleware is neither undone nor undoes anything";
  return (owners.get(root) ?? owner) === owner ? null : "a branch undoes one node only";
}
