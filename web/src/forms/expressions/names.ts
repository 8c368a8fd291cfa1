/** What the expressions of a step, or of an edge, can name: from the document, and from the last run. */

import type { NodeCatalog, NodeType } from "../../model/catalog";
import type { EdgeDefinition, NodeDefinition } from "../../model/definition";
import { edgesOf, nodesOf, valueAt, type WorkflowDocument } from "../../model/document";
import type { Json, JsonFields } from "../../model/json/tree";
import { schemasOf } from "../../model/ports";
import { isFields } from "../schema";

/** What a run has of a step. */
export interface RanStep {
  readonly results: Json | undefined;
  readonly error: Json | undefined;
  readonly state: string;
}

export interface LastRun {
  readonly id: string;
  readonly workflowId: string;
  readonly createdAt: string;
  readonly inputs: Json | undefined;
  readonly steps: ReadonlyMap<string, RanStep>;
}

/** A name and what is known below it. */
export interface NameTree {
  readonly name: string;
  readonly detail: string;
  readonly info?: string | undefined;
  readonly members: readonly NameTree[];
}

const leaf = (name: string, detail: string, info?: string): NameTree => ({ name, detail, info, members: [] });

export function typeOfNode(node: NodeDefinition, catalog: NodeCatalog): NodeType | undefined {
  const found = catalog.find(node.type, node.package?.name, node.package?.version);
  return typeof found === "object" ? found : undefined;
}

/** All nodes that edges lead from to this one, and those upstream of the containers around it; nearest first. */
export function upstreamOf(document: WorkflowDocument, id: string): readonly NodeDefinition[] {
  const nodes = new Map(nodesOf(document).map((node) => [node.id, node]));
  const hosts = new Map(
    nodesOf(document).flatMap((node) => (node.middlewares ?? []).map((one) => [one, node.id])),
  );
  const sources = new Map<string, string[]>();
  for (const { source, target } of edgesOf(document)) {
    const known = sources.get(target.node);
    if (known === undefined) sources.set(target.node, [source.node]);
    else known.push(source.node);
  }
  // What undoes a node reads that node and all before it.
  for (const node of nodes.values()) {
    for (const branch of [node.onFailure, node.onCancel]) {
      if (branch != null) sources.set(branch, [...(sources.get(branch) ?? []), node.id]);
    }
  }
  const start = hosts.get(id) ?? id;
  const seen = new Set([start]);
  const containers = new Set<string>();
  for (const one of seen) {
    const parent = nodes.get(one)?.parent;
    if (parent != null && nodes.has(parent)) {
      containers.add(parent);
      seen.add(parent);
    }
    for (const source of sources.get(one) ?? []) seen.add(source);
  }
  seen.delete(start);
  return [...seen].flatMap((one) => (containers.has(one) ? [] : (nodes.get(one) ?? [])));
}

/** The containers around a node, the innermost first. */
export function containersOf(document: WorkflowDocument, id: string): readonly NodeDefinition[] {
  const nodes = new Map(nodesOf(document).map((node) => [node.id, node]));
  const found: NodeDefinition[] = [];
  for (let here = nodes.get(id)?.parent; here != null; here = nodes.get(here)?.parent) {
    const one = nodes.get(here);
    if (one === undefined || found.includes(one)) break;
    found.push(one);
  }
  return found;
}

/** The node that a middleware wraps. */
export const hostOf = (document: WorkflowDocument, id: string): NodeDefinition | undefined =>
  nodesOf(document).find((node) => node.middlewares?.includes(id));

/** The name by which expressions call a node: its label if no other node has it, else its id. */
export function nameOfNode(document: WorkflowDocument, node: NodeDefinition): string {
  const label = node.label ?? "";
  const isOnly = label !== "" && nodesOf(document).filter((one) => one.label === label).length === 1;
  return isOnly ? label : node.id;
}

/** The members that a schema and a value have, as deep as is useful to complete. */
export function membersOf(schema: Json | undefined, value: Json | undefined, depth = 4): readonly NameTree[] {
  if (depth === 0) return [];
  const made = new Map<string, NameTree>();
  const properties = isFields(schema) && isFields(schema.properties) ? schema.properties : {};
  const values: JsonFields = isFields(value) ? value : {};
  for (const key of new Set([...Object.keys(properties), ...Object.keys(values)])) {
    const described = properties[key];
    const given = Object.hasOwn(values, key) ? values[key] : undefined;
    made.set(key, {
      name: key,
      detail: detailOf(described, given),
      info:
        isFields(described) && typeof described.description === "string" ? described.description : undefined,
      members: membersOf(described, given, depth - 1),
    });
  }
  return [...made.values()];
}

function detailOf(schema: Json | undefined, value: Json | undefined): string {
  if (value !== undefined && (value === null || typeof value !== "object")) {
    const text = JSON.stringify(value);
    return text.length > 32 ? `${text.slice(0, 31)}…` : text;
  }
  if (Array.isArray(value)) return `[${value.length}]`;
  const type = isFields(schema) ? schema.type : undefined;
  return typeof type === "string" ? type : Array.isArray(type) ? type.join(" | ") : "";
}

const ERROR_MEMBERS = [
  leaf("code", "string"),
  leaf("category", "string"),
  leaf("message", "string"),
  leaf("stack", "string"),
];

function nodeTree(
  document: WorkflowDocument,
  node: NodeDefinition,
  catalog: NodeCatalog,
  run: LastRun | null,
): NameTree {
  const type = typeOfNode(node, catalog);
  const ran = run?.steps.get(node.id);
  const results = membersOf(schemasOf(node, type).results, ran?.results);
  return {
    name: nameOfNode(document, node),
    detail: type?.label ?? node.type,
    members: [
      { name: "results", detail: "object", members: results },
      { name: "error", detail: "object | null", members: ERROR_MEMBERS },
      leaf("state", ran?.state ?? "string"),
    ],
  };
}

function inputsTree(document: WorkflowDocument, run: LastRun | null): NameTree {
  const declared = valueAt(document, ["inputs"]);
  const given: JsonFields = isFields(run?.inputs) ? run.inputs : {};
  const members = Object.entries(isFields(declared) ? declared : {}).map(([name, input]): NameTree => {
    const schema = isFields(input) ? input.schema : undefined;
    const info = isFields(input) && typeof input.description === "string" ? input.description : undefined;
    return { name, detail: detailOf(schema, given[name]), info, members: membersOf(schema, given[name]) };
  });
  return { name: "inputs", detail: "inputs of the run", members };
}

const RUN_TREE: NameTree = {
  name: "run",
  detail: "the run itself",
  members: [
    leaf("id", "string"),
    leaf("workflowId", "string"),
    leaf("createdAt", "time"),
    leaf("signals", "object"),
  ],
};

function itemNames(nodes: readonly NodeDefinition[]): readonly NameTree[] {
  return nodes.flatMap((node) =>
    node.map == null
      ? []
      : [leaf(node.map.item ?? "item", "item of the map"), leaf("index", "place in the list")],
  );
}

export interface ScopeOptions {
  /** The step whose expressions they are; of an edge, the one that it comes from. */
  readonly node: string;
  readonly edge?: EdgeDefinition;
}

/** All that can be named at a place. */
export function namesFor(
  document: WorkflowDocument,
  catalog: NodeCatalog,
  run: LastRun | null,
  { node: id, edge }: ScopeOptions,
): readonly NameTree[] {
  const all = nodesOf(document);
  const node = all.find((one) => one.id === id);
  const before = upstreamOf(document, id);
  const readable = edge === undefined || node === undefined ? before : [node, ...before];
  const around = containersOf(document, id);
  const host = hostOf(document, id) ?? node;
  const own = edge === undefined && host !== undefined ? [host, ...around] : around;
  const nodes: NameTree = {
    name: "nodes",
    detail: "steps before this one",
    members: readable.map((one) => nodeTree(document, one, catalog, run)),
  };
  const names = [inputsTree(document, run), nodes, RUN_TREE, ...itemNames(own)];
  if (around.length > 0)
    names.push({ name: "container", detail: "what the container was given", members: [leaf("input", "")] });
  if (edge !== undefined && node !== undefined) {
    const tree = nodeTree(document, node, catalog, run);
    names.push(...tree.members.filter((one) => one.name !== "state"));
  }
  return [...new Map(names.map((one) => [one.name, one])).values()];
}
