/** What the optional settings of a node must keep. Their types and ranges are part of the shape. */

import { compilePath } from "../bindings";
import {
  CALL_TYPE,
  CONTAINER_TYPE,
  IF_TYPE,
  type MapSettings,
  type NodeDefinition,
  SWITCH_TYPE,
} from "../definition";
import {
  MAX_DESCRIPTION_CHARS,
  MAX_EXPRESSION_CHARS,
  MAX_KEY_CHARS,
  MAX_LIST_ITEMS,
  type Problems,
} from "./problems";

const VERSION =
  /^v?(?:[0-9]{1,9}!)?[0-9]{1,9}(?:\.[0-9]{1,9}){0,9}(?:[-_.]?(?:alpha|a|beta|b|preview|pre|c|rc)[-_.]?[0-9]{0,9})?(?:[-_.]?(?:post|rev|r)[-_.]?[0-9]{0,9})?(?:[-_.]?dev[-_.]?[0-9]{0,9})?(?:\+[a-z0-9]{1,32}(?:[-_.][a-z0-9]{1,32}){0,9})?$/i;
const SECRET_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const ITEM_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/;
const RESERVED = new Set(["inputs", "nodes", "run", "secrets", "results", "error", "container", "index"]);
const TAKEN_BY_MAP = new Set(["errors", "done", "error"]);
const MAX_MIDDLEWARES = 16;
const MAX_RESOURCE_REFS = 64;
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
export interface NodeSettings extends NodeDefinition {
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

export function checkSettings(node: NodeSettings, pointer: string, problems: Problems): void {
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
  else {
    const compiled = compilePath(over.over);
    if ("problem" in compiled) problems.add(`${pointer}/over`, "BAD_PATH", compiled.problem);
  }
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
