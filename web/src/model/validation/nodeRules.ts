/** What each node must keep: its id, its type, its ports, its parameters and its settings. */

import { compilePath, isPrintable } from "../bindings";
import type { NodeCatalog, NodeType } from "../catalog";
import {
  CALL_TYPE,
  CONTAINER_TYPE,
  IF_TYPE,
  type MapSettings,
  type NodeDefinition,
  type NodeUi,
  type PortDefinition,
  SWITCH_TYPE,
} from "../definition";
import { isParent, type Json, type JsonFields, type JsonNode } from "../json/tree";
import type { Side } from "../ports";
import {
  MAX_DESCRIPTION_CHARS,
  MAX_EXPRESSION_CHARS,
  MAX_KEY_CHARS,
  MAX_LABEL_CHARS,
  MAX_LIST_ITEMS,
  MAX_PORTS,
  type Problems,
  pointerToken,
} from "./problems";

export const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const NODE_TYPE = /^[A-Za-z][A-Za-z0-9_]*(?:[.-][A-Za-z0-9_]+)*$/;
const PACKAGE_NAME = /^(?!(?:con|prn|aux|nul|(?:com|lpt)[0-9])$)[a-z][a-z0-9_-]{0,63}$/;
const VERSION =
  /^v?(?:[0-9]{1,9}!)?[0-9]{1,9}(?:\.[0-9]{1,9}){0,9}(?:[-_.]?(?:alpha|a|beta|b|preview|pre|c|rc)[-_.]?[0-9]{0,9})?(?:[-_.]?(?:post|rev|r)[-_.]?[0-9]{0,9})?(?:[-_.]?dev[-_.]?[0-9]{0,9})?(?:\+[a-z0-9]{1,32}(?:[-_.][a-z0-9]{1,32}){0,9})?$/i;
const SECRET_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const ITEM_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/;
const RESERVED = new Set(["inputs", "nodes", "run", "secrets", "results", "error", "container", "index"]);
const TAKEN_BY_MAP = new Set(["errors", "done", "error"]);
const TAKEN_BY_CASES = new Set(["done", "error", "value", "trigger"]);
const MAX_PARAMETERS_BYTES = 1024 * 1024;
const MAX_PARAMETERS_DEPTH = 48;
const MAX_MIDDLEWARES = 16;
const MAX_RESOURCE_REFS = 64;
const MAX_SECRET_REFS = 64;
const CONTROLS = [
  ["call", CALL_TYPE],
  ["wait", "core.wait"],
  ["approval", "core.approval"],
  ["signal", "core.signal"],
] as const;
const OF_SCHEDULER = new Set([
  ...CONTROLS.map(([, type]) => type as string),
  IF_TYPE,
  SWITCH_TYPE,
  CONTAINER_TYPE,
]);

export const isExpression = (text: string): boolean => text.startsWith("=");
export const isVersion = (text: string): boolean => text.length <= 64 && VERSION.test(text);
export const isSecretName = (text: string): boolean => SECRET_NAME.test(text);

/** What a node may have besides what the editor edits by name. */
interface NodeSettings extends NodeDefinition {
  readonly runtime?: string | null;
  readonly workerHints?: WorkerHints | null;
  readonly resources?: object | null;
  readonly retry?: object | null;
  readonly concurrencyKey?: string | null;
  readonly affinity?: { readonly key: string } | null;
  readonly resourceRefs?: readonly { readonly resourceId: string }[];
  readonly container?: object | null;
  readonly call?: { readonly workflowId: string } | null;
  readonly wait?: { readonly seconds?: number | null; readonly until?: string | null } | null;
  readonly approval?: { readonly message?: string | null; readonly roles?: readonly string[] } | null;
  readonly signal?: {
    readonly name: string;
    readonly webhook?: boolean;
    readonly secretRef?: string | null;
  } | null;
}

export interface WorkerHints {
  readonly package?: string | null;
  readonly minVersion?: string | null;
  readonly labels?: Readonly<Record<string, string>>;
}

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

function checkSettings(node: NodeSettings, pointer: string, problems: Problems): void {
  if (node.when != null) problems.checkKey(`${pointer}/when`, node.when, MAX_EXPRESSION_CHARS);
  if (node.concurrencyKey != null)
    checkSettingKey(node.concurrencyKey, `${pointer}/concurrencyKey`, problems);
  if (node.affinity != null) checkSettingKey(node.affinity.key, `${pointer}/affinity/key`, problems);
  if (node.runtime != null) problems.checkKey(`${pointer}/runtime`, node.runtime, MAX_KEY_CHARS);
  if (node.workerHints != null) checkHints(node.workerHints, `${pointer}/workerHints`, problems);
  if (node.resources != null && OF_SCHEDULER.has(node.type)) {
    problems.add(`${pointer}/resources`, "INVALID", "a node of the scheduler takes no resources of a worker");
  }
  const middlewares = node.middlewares ?? [];
  if (middlewares.length > 0 && OF_SCHEDULER.has(node.type)) {
    problems.add(
      `${pointer}/middlewares`,
      "INVALID",
      "a node that the scheduler carries out has no middlewares",
    );
  }
  problems.checkCount(`${pointer}/middlewares`, middlewares.length, MAX_MIDDLEWARES, "middlewares");
  const refs = node.resourceRefs ?? [];
  if (problems.checkCount(`${pointer}/resourceRefs`, refs.length, MAX_RESOURCE_REFS, "resources")) {
    refs.forEach((ref, number) => {
      problems.checkKey(`${pointer}/resourceRefs/${number}/resourceId`, ref.resourceId, 1_024);
    });
  }
  if (node.map != null) checkMap(node.map, `${pointer}/map`, problems);
  checkBody(node, pointer, problems);
  checkControls(node, pointer, problems);
}

function checkSettingKey(text: string, pointer: string, problems: Problems): void {
  problems.checkKey(pointer, text, isExpression(text) ? MAX_EXPRESSION_CHARS : MAX_KEY_CHARS);
}

export function checkHints(hints: WorkerHints, pointer: string, problems: Problems): void {
  if (hints.package != null) problems.checkKey(`${pointer}/package`, hints.package, MAX_KEY_CHARS);
  if (hints.minVersion != null && !isVersion(hints.minVersion)) {
    problems.add(`${pointer}/minVersion`, "BAD_TEXT", "not a version");
  }
  const labels = Object.entries(hints.labels ?? {});
  if (!problems.checkCount(`${pointer}/labels`, labels.length, MAX_LIST_ITEMS, "labels")) return;
  for (const [key, value] of labels) {
    problems.checkKey(`${pointer}/labels`, key, MAX_KEY_CHARS);
    problems.checkText(`${pointer}/labels`, value, MAX_KEY_CHARS);
  }
}

function checkMap(over: MapSettings, pointer: string, problems: Problems): void {
  if (isExpression(over.over)) problems.checkText(`${pointer}/over`, over.over, MAX_EXPRESSION_CHARS);
  else checkPath(over.over, `${pointer}/over`, problems);
  if (over.item != null && (!ITEM_NAME.test(over.item) || RESERVED.has(over.item))) {
    problems.add(`${pointer}/item`, "BAD_TEXT", "an item cannot have this name");
  }
  const collect = over.collect ?? "items";
  problems.checkKey(`${pointer}/collect`, collect, MAX_KEY_CHARS);
  if (TAKEN_BY_MAP.has(collect)) {
    problems.add(`${pointer}/collect`, "BAD_TEXT", `another output of the node has this name: ${collect}`);
  }
}

function checkBody(node: NodeSettings, pointer: string, problems: Problems): void {
  if (node.container != null && node.type !== CONTAINER_TYPE) {
    problems.add(`${pointer}/container`, "INVALID", `only a node of type ${CONTAINER_TYPE} has this setting`);
  }
  if (node.retry != null && (node.type === CONTAINER_TYPE || node.type === CALL_TYPE)) {
    problems.add(`${pointer}/retry`, "INVALID", "the nodes inside are retried, each by its own setting");
  }
}

function checkControls(node: NodeSettings, pointer: string, problems: Problems): void {
  for (const [name, type] of CONTROLS) {
    const isSet = node[name] != null;
    if (isSet && node.type !== type) {
      problems.add(`${pointer}/${name}`, "INVALID", `only a node of type ${type} has this setting`);
    }
    if (!isSet && node.type === type && name !== "approval") {
      problems.add(pointer, "INVALID", `a node of type ${type} needs the setting ${name}`);
    }
  }
  const { wait, approval, signal, call } = node;
  if (wait != null) checkWait(wait, `${pointer}/wait`, problems);
  if (approval != null) checkApproval(approval, `${pointer}/approval`, problems);
  if (signal != null) checkSignal(signal, `${pointer}/signal`, problems);
  if (call != null) problems.checkKey(`${pointer}/call/workflowId`, call.workflowId, MAX_KEY_CHARS);
}

function checkWait(wait: NonNullable<NodeSettings["wait"]>, pointer: string, problems: Problems): void {
  if ((wait.seconds == null) === (wait.until == null)) {
    problems.add(pointer, "INVALID", "a wait needs either seconds or until");
  }
  if (wait.until == null) return;
  if (isExpression(wait.until)) problems.checkText(`${pointer}/until`, wait.until, MAX_EXPRESSION_CHARS);
  else if (!TIME.test(wait.until))
    problems.add(`${pointer}/until`, "INVALID", "not a time, nor an expression");
}

function checkApproval(
  approval: NonNullable<NodeSettings["approval"]>,
  pointer: string,
  problems: Problems,
): void {
  if (approval.message != null)
    problems.checkText(`${pointer}/message`, approval.message, MAX_DESCRIPTION_CHARS);
  const roles = approval.roles ?? [];
  if (!problems.checkCount(`${pointer}/roles`, roles.length, MAX_LIST_ITEMS, "roles")) return;
  roles.forEach((role, number) => {
    problems.checkKey(`${pointer}/roles/${number}`, role, MAX_KEY_CHARS);
  });
}

function checkSignal(signal: NonNullable<NodeSettings["signal"]>, pointer: string, problems: Problems): void {
  const isFormula = isExpression(signal.name);
  if (isFormula) problems.checkText(`${pointer}/name`, signal.name, MAX_EXPRESSION_CHARS);
  else {
    problems.checkKey(`${pointer}/name`, signal.name, MAX_KEY_CHARS);
    if (signal.name.includes("/"))
      problems.add(`${pointer}/name`, "BAD_TEXT", "the name of a signal has no slash");
  }
  if (signal.webhook && isFormula) {
    problems.add(`${pointer}/name`, "INVALID", "the address is known from the start of a run");
  }
  if (signal.secretRef == null) return;
  if (!isSecretName(signal.secretRef))
    problems.add(`${pointer}/secretRef`, "BAD_TEXT", "not the name of a secret");
  else if (!signal.webhook)
    problems.add(`${pointer}/secretRef`, "INVALID", "only requests to an address are signed");
}
