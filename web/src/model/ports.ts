/** The ports of a node: its own where it has some, else those of its type, and those that every node has. */

import { compilePath } from "./bindings";
import type { NodeType } from "./catalog";
import { IF_TYPE, type NodeDefinition, type PortDefinition, type PortKind, SWITCH_TYPE } from "./definition";
import type { Json, JsonFields } from "./json/tree";
import { type TypeNames, typesAt } from "./schemaTypes";

export interface Port {
  readonly key: string;
  readonly label: string;
  readonly kind: PortKind;
  /** Below `parameters` or `results`. */
  readonly path: readonly string[];
  readonly isMultiple: boolean;
  /** The JSON types that it brings or takes; null if they are not known. */
  readonly types: TypeNames | null;
  /** Of a node that chooses: it is the port of a case. */
  readonly isCase: boolean;
  /** Every node has it, declared or not. */
  readonly isImplied: boolean;
}

export type Side = "inputPorts" | "outputPorts";

export interface NodePorts {
  readonly inputs: ReadonlyMap<string, Port>;
  readonly outputs: ReadonlyMap<string, Port>;
  /** Whether the ports of a side are known at all: those of a type that nobody knows are not. */
  readonly knowsInputs: boolean;
  readonly knowsOutputs: boolean;
}

const BOOLEAN: TypeNames = new Set(["boolean"]);
const OBJECT: TypeNames = new Set(["object"]);
const ROOTS = { inputPorts: "parameters", outputPorts: "results" } as const;
export const MAP_ERRORS = "errors";
export const MAP_ITEMS = "items";

function implied(key: string, kind: PortKind): Port {
  const types = key === "done" ? BOOLEAN : null;
  return {
    key,
    label: key,
    kind,
    path: [],
    isMultiple: kind === "control",
    types,
    isCase: false,
    isImplied: true,
  };
}

export const TRIGGER = implied("trigger", "control");
export const DONE = implied("done", "control");
export const ERROR = implied("error", "error");

export function schemasOf(
  node: NodeDefinition,
  type: NodeType | undefined,
): { parameters?: Json; results?: Json } {
  const parameters = node.schema?.parameters ?? type?.schema?.parameters;
  const results = node.schema?.results ?? type?.schema?.results;
  return { ...(parameters == null ? {} : { parameters }), ...(results == null ? {} : { results }) };
}

export function portsOf(node: NodeDefinition, type: NodeType | undefined): NodePorts {
  const ownInputs = node.ui?.inputPorts ?? type?.ui?.inputPorts;
  const ownOutputs = node.ui?.outputPorts ?? type?.ui?.outputPorts;
  const schemas = schemasOf(node, type);
  const inputs = sideOf(ownInputs ?? [], "inputPorts", schemas.parameters);
  inputs.set("trigger", TRIGGER);
  const outputs = sideOf(ownOutputs ?? [], "outputPorts", schemas.results);
  outputs.set("done", DONE);
  if (!outputs.has("error")) outputs.set("error", ERROR);
  for (const name of casesOf(node)) outputs.set(name, casePort(name, schemas.results));
  if (node.map != null) {
    for (const name of [node.map.collect ?? MAP_ITEMS, MAP_ERRORS]) outputs.set(name, collected(name));
  }
  return { inputs, outputs, knowsInputs: ownInputs != null, knowsOutputs: ownOutputs != null };
}

function sideOf(ports: readonly PortDefinition[], side: Side, schema: Json | undefined): Map<string, Port> {
  const made = new Map<string, Port>();
  for (const one of ports) {
    if (typeof one?.key === "string") made.set(one.key, portOf(one, side, schema));
  }
  return made;
}

function portOf(given: PortDefinition, side: Side, schema: Json | undefined): Port {
  const kind = given.kind ?? "data";
  const path = pathOf(given, side, kind);
  const isMultiple = given.multiple === true;
  const base = { key: given.key, label: given.label ?? given.key, kind, path, isMultiple };
  const types = typesOfPort(base, given, side, schema);
  return { ...base, types, isCase: false, isImplied: false };
}

function pathOf(given: PortDefinition, side: Side, kind: PortKind): readonly string[] {
  if (given.binding == null) {
    const compiled = kind === "data" ? compilePath(given.key) : { path: [] };
    return "path" in compiled ? compiled.path : [];
  }
  const compiled = compilePath(given.binding.path);
  const root = kind === "error" ? "error" : ROOTS[side];
  return "path" in compiled && compiled.path[0] === root ? compiled.path.slice(1) : [];
}

function typesOfPort(
  port: Pick<Port, "kind" | "path" | "isMultiple">,
  given: PortDefinition,
  side: Side,
  schema: Json | undefined,
): TypeNames | null {
  if (side === "inputPorts") {
    if (port.kind !== "data") return null;
    return typesAt(schema, port.isMultiple ? [...port.path, "0"] : port.path);
  }
  if (port.kind === "control") return BOOLEAN;
  if (port.kind === "error" || given.binding?.unwrap != null) return null;
  return port.path.length === 0 ? OBJECT : typesAt(schema, port.path);
}

function casePort(key: string, results: Json | undefined): Port {
  const types = typesAt(results, ["value"]);
  return {
    key,
    label: key,
    kind: "data",
    path: ["value"],
    isMultiple: false,
    types,
    isCase: true,
    isImplied: false,
  };
}

function collected(key: string): Port {
  return {
    key,
    label: key,
    kind: "data",
    path: [key],
    isMultiple: false,
    types: null,
    isCase: false,
    isImplied: true,
  };
}

/** The cases of a node that chooses: each is an output. */
export function casesOf(node: NodeDefinition): readonly string[] {
  if (node.type === IF_TYPE) return ["true", "false"];
  if (node.type !== SWITCH_TYPE) return [];
  const rows = node.parameters?.cases;
  const names = Array.isArray(rows) ? rows.map((row) => (row as JsonFields | null)?.port) : [];
  const all = [...names, node.parameters?.default];
  return [...new Set(all.filter((name): name is string => typeof name === "string" && name !== ""))];
}
