/** What each node must keep: its id, its type, its ports and its parameters. */

import { compilePath, isPrintable } from "../bindings";
import type { NodeCatalog, NodeType } from "../catalog";
import { type NodeDefinition, type NodeUi, type PortDefinition, SWITCH_TYPE } from "../definition";
import { isParent, type Json, type JsonFields, type JsonNode } from "../json/tree";
import type { Side } from "../ports";
import {
  MAX_KEY_CHARS,
  MAX_LABEL_CHARS,
  MAX_LIST_ITEMS,
  MAX_PORTS,
  type Problems,
  pointerToken,
} from "./problems";
import { checkSettings, isExpression, isSecretName, isVersion, type NodeSettings } from "./settingsRules";

export const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const NODE_TYPE = /^[A-Za-z][A-Za-z0-9_]*(?:[.-][A-Za-z0-9_]+)*$/;
const PACKAGE_NAME = /^(?!(?:con|prn|aux|nul|(?:com|lpt)[0-9])$)[a-z][a-z0-9_-]{0,63}$/;
const TAKEN_BY_CASES = new Set(["done", "error", "value", "trigger"]);
const MAX_PARAMETERS_BYTES = 1024 * 1024;
const MAX_PARAMETERS_DEPTH = 48;
const MAX_SECRET_REFS = 64;

/** What is known of the type of a node: its type, that it carries all it needs itself, or nothing. */
export type Resolved = NodeType | "carried" | null;

export function checkNode(
  node: NodeDefinition,
  tree: JsonNode | undefined,
  place: number,
  catalog: NodeCatalog,
  problems: Problems,
): Resolved {
  const pointer = `/nodes/${place}`;
  if (!UUID.test(node.id)) problems.add(`${pointer}/id`, "BAD_ID", "the id of a node must be a UUID");
  if (node.label != null) problems.checkText(`${pointer}/label`, node.label, MAX_LABEL_CHARS);
  const isSound = checkParameters(node, tree, pointer, problems);
  if (node.ui != null) checkUi(node.ui, `${pointer}/ui`, problems);
  const found = resolve(node, pointer, catalog, problems);
  checkSettings(node as NodeSettings, pointer, problems);
  if (node.type === SWITCH_TYPE)
    checkCases(isSound ? (node.parameters ?? {}) : {}, `${pointer}/parameters`, problems);
  return found;
}

function resolve(node: NodeDefinition, pointer: string, catalog: NodeCatalog, problems: Problems): Resolved {
  const { name, version } = node.package ?? {};
  const before = problems.count;
  if (node.type.length > MAX_KEY_CHARS || !NODE_TYPE.test(node.type)) {
    problems.add(`${pointer}/type`, "BAD_TEXT", "not the name of a node type");
  }
  if (name != null && !PACKAGE_NAME.test(name)) {
    problems.add(`${pointer}/package/name`, "BAD_TEXT", "a package cannot have this name");
  }
  if (version != null && !isVersion(version))
    problems.add(`${pointer}/package/version`, "BAD_TEXT", "not a version");
  if (problems.count > before) return null;
  const found = catalog.find(node.type, name, version);
  if (typeof found === "object") return found;
  const isCarried = node.ui?.inputPorts != null || node.ui?.outputPorts != null;
  if ((found === "package" || found === "version") && isCarried && name != null && version != null)
    return "carried";
  if (found === "version") return null; // the scheduler may know other versions than the catalog lists
  if (found === "package") {
    problems.add(`${pointer}/package`, "UNKNOWN_PACKAGE", `no package of this name is known: ${name}`);
  } else {
    const reason =
      found === "type"
        ? "no known package has a node of this type"
        : "several packages have a node of this type";
    problems.add(`${pointer}/type`, "UNKNOWN_TYPE", `${reason}: ${node.type}`);
  }
  return null;
}

function checkUi(ui: NodeUi, pointer: string, problems: Problems): void {
  for (const side of ["inputPorts", "outputPorts"] as const) {
    const ports = ui[side];
    if (ports == null || !problems.checkCount(`${pointer}/${side}`, ports.length, MAX_PORTS, "ports"))
      continue;
    const seen = new Set<string>();
    ports.forEach((port, place) => {
      const here = `${pointer}/${side}/${place}`;
      checkPort(port, side, here, problems);
      if (seen.has(port.key)) problems.add(`${here}/key`, "DUPLICATE_ID", "two ports have the same key");
      seen.add(port.key);
    });
  }
  const widgets = ui.widgets ?? [];
  if (!problems.checkCount(`${pointer}/widgets`, widgets.length, MAX_LIST_ITEMS, "widgets")) return;
  widgets.forEach((widget, place) => {
    if (widget.binding == null) return;
    const here = `${pointer}/widgets/${place}/binding/path`;
    const path = checkPath(widget.binding.path, here, problems);
    if (path !== null && path[0] !== "parameters" && path[0] !== "results") {
      problems.add(here, "BAD_PATH", "the path must begin with parameters or results");
    }
  });
}

function checkPort(port: PortDefinition, side: Side, pointer: string, problems: Problems): void {
  problems.checkKey(`${pointer}/key`, port.key, MAX_KEY_CHARS);
  if (port.label != null) problems.checkText(`${pointer}/label`, port.label, MAX_LABEL_CHARS);
  const kind = port.kind ?? "data";
  if (kind === "error" && side === "inputPorts") {
    problems.add(`${pointer}/kind`, "INVALID", "an input cannot be an error port");
  }
  if (port.binding == null) {
    if (kind === "data") checkPath(port.key, `${pointer}/key`, problems);
    return;
  }
  const usual = side === "inputPorts" ? "write" : "read";
  if (port.binding.mode != null && port.binding.mode !== "two_way" && port.binding.mode !== usual) {
    problems.add(`${pointer}/binding/mode`, "INVALID", `this side of a node has bindings to ${usual}`);
  }
  const here = `${pointer}/binding/path`;
  const path = checkPath(port.binding.path, here, problems);
  if (path === null) return;
  const root = kind === "error" ? "error" : side === "inputPorts" ? "parameters" : "results";
  if (path[0] !== root) problems.add(here, "BAD_PATH", `the path must begin with ${root}`);
  else if (side === "inputPorts" && path.length === 1) {
    problems.add(here, "BAD_PATH", "an input must name a parameter, not all of them");
  }
}

function checkPath(text: string, pointer: string, problems: Problems): readonly string[] | null {
  const compiled = compilePath(text);
  if ("path" in compiled) return compiled.path;
  problems.add(pointer, "BAD_PATH", compiled.problem);
  return null;
}

function checkParameters(
  node: NodeDefinition,
  tree: JsonNode | undefined,
  pointer: string,
  problems: Problems,
): boolean {
  const here = `${pointer}/parameters`;
  if (tree === undefined || tree.kind === "null") return true;
  if (tree.kind !== "object") {
    problems.add(here, "INVALID", "parameters must be an object");
    return false;
  }
  if (new TextEncoder().encode(tree.text).length > MAX_PARAMETERS_BYTES) {
    problems.add(here, "LIMIT", `parameters are larger than ${MAX_PARAMETERS_BYTES} bytes`);
    return false;
  }
  const unfit = unfitOf(tree);
  if (unfit !== null) {
    problems.add(here, unfit.code, unfit.message);
    return false;
  }
  const malformed = malformedSecret(node.parameters ?? {});
  if (malformed !== null) problems.add(here + malformed.pointer, "INVALID", malformed.message);
  return malformed === null;
}

function unfitOf(tree: JsonNode): { code: "INVALID" | "LIMIT"; message: string } | null {
  let level: readonly JsonNode[] = [tree];
  for (let depth = 0; depth <= MAX_PARAMETERS_DEPTH; depth += 1) {
    for (const one of level) {
      if (one.kind !== "number" || !/^-?[0-9]{19,}$/.test(one.text)) continue;
      const value = BigInt(one.text);
      if (value < -(2n ** 63n) || value > 2n ** 64n - 1n) {
        return { code: "INVALID", message: "there is an integer beyond 64 bits" };
      }
    }
    level = level.flatMap((one) => (isParent(one) ? one.children.map((child) => child.value) : []));
    if (level.length === 0) return null;
  }
  return { code: "LIMIT", message: `the value is nested deeper than ${MAX_PARAMETERS_DEPTH}` };
}

function malformedSecret(parameters: JsonFields): { pointer: string; message: string } | null {
  const names = new Set<string>();
  const look = (value: Json, pointer: string): { pointer: string; message: string } | null => {
    if (value === null || typeof value !== "object") return null;
    if (!Array.isArray(value) && Object.hasOwn(value, "secretRef")) {
      const ref = (value as JsonFields).secretRef as JsonFields | null;
      const isPlain = ref !== null && typeof ref === "object" && Object.keys(ref).join() === "name";
      const name = isPlain ? ref.name : undefined;
      if (Object.keys(value).length !== 1 || typeof name !== "string" || !isSecretName(name)) {
        return {
          pointer,
          message: 'a reference to a secret is {"secretRef": {"name": "…"}} and nothing else',
        };
      }
      names.add(name);
      return names.size > MAX_SECRET_REFS
        ? { pointer, message: `a node can refer to at most ${MAX_SECRET_REFS} secrets` }
        : null;
    }
    for (const [key, one] of Object.entries(value)) {
      const found = look(one as Json, `${pointer}/${pointerToken(key)}`);
      if (found !== null) return found;
    }
    return null;
  };
  return look(parameters, "");
}

function checkCases(parameters: JsonFields, pointer: string, problems: Problems): void {
  const rows = parameters.cases;
  if (!Array.isArray(rows) || rows.length < 1 || rows.length > MAX_PORTS) {
    problems.add(`${pointer}/cases`, "INVALID", `a switch has 1 to ${MAX_PORTS} cases`);
    return;
  }
  const isPort = (name: string): boolean =>
    name !== "" && name.length <= MAX_KEY_CHARS && isPrintable(name) && !TAKEN_BY_CASES.has(name);
  const known = new Set<string>();
  rows.forEach((given, number) => {
    const row = given as JsonFields | null;
    const port = row !== null && typeof row === "object" && !Array.isArray(row) ? row.port : undefined;
    const isSound =
      row !== null &&
      typeof port === "string" &&
      isPort(port) &&
      !known.has(port) &&
      Object.hasOwn(row, "when") !== Object.hasOwn(row, "equals") &&
      !(typeof row.when === "string" && !isExpression(row.when));
    if (isSound) known.add(port);
    else
      problems.add(
        `${pointer}/cases/${number}`,
        "INVALID",
        "a case has a port of its own, and either when or equals",
      );
  });
  const usual = parameters.default;
  if (usual != null && !(typeof usual === "string" && isPort(usual))) {
    problems.add(`${pointer}/default`, "INVALID", "the default is the name of a port");
  }
}
