/** Edits of nodes. Each takes a document and gives another one; ids are given by the caller. */

import { compilePath } from "../bindings";
import { CONTAINER_TYPE, type EdgeDefinition, type NodeDefinition, type Position } from "../definition";
import {
  appendAt,
  EditError,
  edgesOf,
  nodesOf,
  placeOfNode,
  removeAt,
  removeWhere,
  setAt,
  setInItems,
  valueAt,
  type WorkflowDocument,
} from "../document";
import type { Json, JsonFields, JsonPath } from "../json/tree";
import { leaveGroups } from "./canvas";

export interface NewNode {
  readonly id: string;
  readonly type: string;
  readonly package?: { readonly name: string; readonly version: string };
  readonly label?: string;
  readonly position: Position;
  readonly parameters?: JsonFields;
  readonly parent?: string;
  /** What a type needs besides, as `wait` of a `core.wait`. */
  readonly settings?: JsonFields;
}

export function addNode(document: WorkflowDocument, given: NewNode): WorkflowDocument {
  const { id, type, position, settings } = given;
  const value: JsonFields = {
    id,
    type,
    ...(given.package ? { package: { ...given.package } } : {}),
    ...(given.label ? { label: given.label } : {}),
    position: rounded(position),
    parameters: given.parameters ?? {},
    ...(given.parent ? { parent: given.parent } : {}),
    ...settings,
  };
  return appendAt(document, ["nodes"], { value });
}

const rounded = (at: Position): JsonFields => ({ x: Math.round(at.x), y: Math.round(at.y) });

/** The node itself, and all nodes inside of it. */
export function withMembers(document: WorkflowDocument, ids: Iterable<string>): Set<string> {
  const found = new Set(ids);
  const nodes = nodesOf(document);
  for (let size = -1; size !== found.size; ) {
    size = found.size;
    for (const node of nodes) if (node.parent != null && found.has(node.parent)) found.add(node.id);
  }
  return found;
}

export interface RemoveOptions {
  /** Whether an edge may lead from one end to the other; without it nothing is connected anew. */
  readonly heals?: (source: EdgeDefinition["source"], target: EdgeDefinition["target"]) => boolean;
}

/**
 * Remove nodes with what refers to them: edges, outputs of the run, chains of middlewares, branches that undo. With
 * `heals` what came before the removed nodes is connected with what came after.
 */
export function removeNodes(
  document: WorkflowDocument,
  ids: Iterable<string>,
  options: RemoveOptions = {},
): WorkflowDocument {
  const gone = withMembers(document, ids);
  const bridges = options.heals ? bridgesOver(document, gone, options.heals) : [];
  let edited = removeWhere<NodeDefinition>(document, ["nodes"], (node) => gone.has(node.id));
  edited = removeWhere<EdgeDefinition>(
    edited,
    ["edges"],
    (edge) => gone.has(edge.source.node) || gone.has(edge.target.node),
  );
  for (const bridge of bridges) edited = appendAt(edited, ["edges"], { value: bridge });
  return withoutReferences(edited, gone);
}

function withoutReferences(document: WorkflowDocument, gone: ReadonlySet<string>): WorkflowDocument {
  let edited = document;
  nodesOf(document).forEach((node, place) => {
    for (const field of ["onFailure", "onCancel"] as const) {
      const target = node[field];
      if (target != null && gone.has(target)) edited = removeAt(edited, ["nodes", place, field]);
    }
    const chain: JsonPath = ["nodes", place, "middlewares"];
    if (node.middlewares?.some((id) => gone.has(id))) {
      edited = removeWhere<string>(edited, chain, (id) => gone.has(id));
      if (valueAt(edited, [...chain, 0]) === undefined) edited = removeAt(edited, chain);
    }
  });
  const outputs = valueAt(edited, ["outputs"]);
  for (const [name, output] of Object.entries(outputs ?? {})) {
    const source = (output as unknown as { source?: { node?: string } } | null)?.source?.node;
    if (source !== undefined && gone.has(source)) edited = removeAt(edited, ["outputs", name]);
  }
  return leaveGroups(edited, gone);
}

type Bridge = { source: JsonFields; target: JsonFields };

function bridgesOver(
  document: WorkflowDocument,
  gone: ReadonlySet<string>,
  heals: NonNullable<RemoveOptions["heals"]>,
): Bridge[] {
  const edges = edgesOf(document);
  const reached = (start: string): EdgeDefinition["target"][] => {
    const seen = new Set([start]);
    const ends: EdgeDefinition["target"][] = [];
    for (const id of seen) {
      for (const edge of edges) {
        if (edge.source.node !== id) continue;
        if (gone.has(edge.target.node)) seen.add(edge.target.node);
        else ends.push(edge.target);
      }
    }
    return ends;
  };
  const made: Bridge[] = [];
  const taken = new Set<string>();
  for (const edge of edges) {
    if (gone.has(edge.source.node) || !gone.has(edge.target.node)) continue;
    for (const target of reached(edge.target.node)) {
      const key = JSON.stringify([edge.source, target]);
      if (taken.has(key) || edge.source.node === target.node || !heals(edge.source, target)) continue;
      taken.add(key);
      made.push({ source: { ...edge.source } as JsonFields, target: { ...target } as JsonFields });
    }
  }
  return made;
}

export function moveNodes(
  document: WorkflowDocument,
  positions: ReadonlyMap<string, Position>,
): WorkflowDocument {
  return setInItems<NodeDefinition>(document, ["nodes"], "position", ({ id, position }) => {
    const at = positions.get(id);
    if (at === undefined || (position?.x === at.x && position?.y === at.y)) return undefined;
    return { ...(position as JsonFields | null), ...rounded(at) };
  });
}

/** Set a field of a node, at any depth. Undefined removes it. */
export function setField(
  document: WorkflowDocument,
  id: string,
  path: readonly string[],
  value: Json | undefined,
): WorkflowDocument {
  const place: JsonPath = ["nodes", placeOfNode(document, id), ...path];
  return value === undefined ? removeAt(document, place) : setAt(document, place, value);
}

export function renameNode(document: WorkflowDocument, id: string, label: string): WorkflowDocument {
  return setField(document, id, ["label"], label === "" ? undefined : label);
}

export function setDisabled(
  document: WorkflowDocument,
  ids: Iterable<string>,
  isDisabled: boolean,
): WorkflowDocument {
  let edited = document;
  for (const id of ids) edited = setField(edited, id, ["disabled"], isDisabled ? true : undefined);
  return edited;
}

/** Set what a widget is bound to (`parameters.url`). Undefined removes it. Throws EditError for a path that is none. */
export function setBound(
  document: WorkflowDocument,
  id: string,
  binding: string,
  value: Json | undefined,
): WorkflowDocument {
  const compiled = compilePath(binding);
  if ("problem" in compiled) throw new EditError(compiled.problem);
  const [root, ...rest] = compiled.path;
  if (root !== "parameters" || rest.length === 0)
    throw new EditError(`only parameters can be set: ${binding}`);
  const base: JsonPath = ["nodes", placeOfNode(document, id), "parameters"];
  if (value === undefined) return removeAt(document, [...base, ...rest]);
  return setAt(withLists(document, base, rest), [...base, ...rest], value);
}

/** A list is made as long as an index needs it, with null for what is not set: the scheduler does so, too. */
function withLists(document: WorkflowDocument, base: JsonPath, steps: readonly string[]): WorkflowDocument {
  let edited = document;
  steps.forEach((step, depth) => {
    const here = [...base, ...steps.slice(0, depth)];
    const list = valueAt(edited, here);
    if (!Array.isArray(list) || !/^[0-9]+$/.test(step)) return;
    for (let length = list.length; length <= Number(step); length += 1) {
      edited = appendAt(edited, here, { value: null });
    }
  });
  return edited;
}

/** Put nodes into a container, or with null out of all. Edges that would cross a border are removed. */
export function setParent(
  document: WorkflowDocument,
  ids: readonly string[],
  parent: string | null,
): WorkflowDocument {
  if (parent !== null && nodesOf(document)[placeOfNode(document, parent)]?.type !== CONTAINER_TYPE) {
    throw new EditError("only a container can hold nodes");
  }
  if (parent !== null && withMembers(document, ids).has(parent)) {
    throw new EditError("a container cannot be inside itself");
  }
  const withChains = new Set(ids);
  for (const node of nodesOf(document)) {
    if (withChains.has(node.id)) for (const one of node.middlewares ?? []) withChains.add(one);
  }
  let edited = document;
  for (const id of withChains) edited = setField(edited, id, ["parent"], parent ?? undefined);
  return withoutCrossing(edited);
}

function withoutCrossing(document: WorkflowDocument): WorkflowDocument {
  const parents = new Map(nodesOf(document).map((node) => [node.id, node.parent ?? null]));
  return removeWhere<EdgeDefinition>(document, ["edges"], ({ source, target }) => {
    const [from, to] = [parents.get(source.node), parents.get(target.node)];
    return from !== to && from !== target.node && to !== source.node;
  });
}

/** Dissolve a container: its nodes stay, one level up. */
export function unwrapContainer(document: WorkflowDocument, id: string): WorkflowDocument {
  const inside = nodesOf(document).filter((node) => node.parent === id);
  const outer = nodesOf(document)[placeOfNode(document, id)]?.parent ?? null;
  const edited = setParent(
    document,
    inside.map((node) => node.id),
    outer,
  );
  return removeNodes(edited, [id]);
}

/** Wrap a host by a node: the place in the chain counts from the outermost. */
export function addMiddleware(
  document: WorkflowDocument,
  host: string,
  middleware: string,
  place: number,
): WorkflowDocument {
  const chain = [...(nodesOf(document)[placeOfNode(document, host)]?.middlewares ?? [])].filter(
    (id) => id !== middleware,
  );
  chain.splice(place, 0, middleware);
  const edited = removeWhere<EdgeDefinition>(
    setField(document, host, ["middlewares"], chain),
    ["edges"],
    ({ source, target }) => source.node === middleware || target.node === middleware,
  );
  const parent = nodesOf(edited)[placeOfNode(edited, host)]?.parent;
  return setField(edited, middleware, ["parent"], parent ?? undefined);
}

export function removeMiddleware(
  document: WorkflowDocument,
  host: string,
  middleware: string,
): WorkflowDocument {
  const chain = (nodesOf(document)[placeOfNode(document, host)]?.middlewares ?? []).filter(
    (id) => id !== middleware,
  );
  return setField(document, host, ["middlewares"], chain.length > 0 ? chain : undefined);
}
