/**
 * The shape of a definition: which fields have which types and ranges. As for the scheduler, the first thing that is
 * wrong in a part of the document is reported, and a pointer ends at the first list or map of values on its way.
 */

import { isParent, type JsonNode, type JsonParent, placeOf, plainOf } from "../json/tree";
import type { Problems } from "./problems";

interface Misfit {
  readonly pointer: string;
  readonly message: string;
}

type Check = (node: JsonNode) => Misfit | null;
type Fields = Readonly<Record<string, Check>>;

const expected = (what: string, node: JsonNode): Misfit => ({
  pointer: "",
  message: `expected ${what}, got ${node.kind}`,
});

const text: Check = (node) => (node.kind === "string" ? null : expected("text", node));
const flag: Check = (node) => (node.kind === "boolean" ? null : expected("true or false", node));
const anything: Check = () => null;
const orNull =
  (check: Check): Check =>
  (node) =>
    node.kind === "null" ? null : check(node);

function number(least: number, most: number, isAbove = false): Check {
  return (node) => {
    if (node.kind !== "number") return expected("a number", node);
    const value = Number(node.text);
    const isLow = isAbove ? value <= least : value < least;
    return isLow || value > most
      ? { pointer: "", message: `expected a number ${isAbove ? "above" : "from"} ${least} to ${most}` }
      : null;
  };
}

/** `1.0` is no integer, for the scheduler neither. */
function integer(least: number, most: number): Check {
  const inRange = number(least, most);
  return (node) =>
    node.kind === "number" && !/^-?[0-9]+$/.test(node.text) ? expected("an integer", node) : inRange(node);
}

function oneOf(...words: readonly string[]): Check {
  return (node) => {
    if (node.kind !== "string") return expected("text", node);
    return words.includes(plainOf(node) as string)
      ? null
      : { pointer: "", message: `expected one of ${words.join(", ")}` };
  };
}

const below = (found: Misfit): Misfit => ({ pointer: "", message: found.message });

function list(item: Check): Check {
  return (node) => {
    if (node.kind !== "array") return expected("a list", node);
    for (const child of (node as JsonParent).children) {
      const found = item(child.value);
      if (found) return below(found);
    }
    return null;
  };
}

function map(value: Check): Check {
  return (node) => {
    if (node.kind !== "object") return expected("an object", node);
    for (const child of (node as JsonParent).children) {
      const found = value(child.value);
      if (found) return below(found);
    }
    return null;
  };
}

function object(required: Fields, optional: Fields): Check {
  return (node) => {
    if (node.kind !== "object") return expected("an object", node);
    for (const child of (node as JsonParent).children) {
      const check = Object.hasOwn(required, child.key)
        ? required[child.key]
        : Object.hasOwn(optional, child.key)
          ? optional[child.key]
          : undefined;
      const found = check?.(child.value);
      if (found) return { pointer: `/${child.key}${found.pointer}`, message: found.message };
    }
    for (const name of Object.keys(required)) {
      if (placeOf(node as JsonParent, name) < 0)
        return { pointer: "", message: `a required field is missing: ${name}` };
    }
    return null;
  };
}

const YEAR = 366 * 86_400;
const seconds = number(0, YEAR, true);
const priority = integer(-100, 100);
const objects = map(anything);
const end = object({ node: text }, { port: orNull(text) });
const binding = object(
  { path: text },
  { mode: orNull(oneOf("read", "write", "two_way")), unwrap: orNull(text) },
);
const port = object(
  { key: text },
  {
    label: orNull(text),
    binding: orNull(binding),
    multiple: flag,
    kind: orNull(oneOf("data", "control", "error")),
  },
);
const widget = object(
  { key: text },
  { label: orNull(text), component: orNull(text), binding: orNull(binding), options: orNull(objects) },
);
const hints = object({}, { package: orNull(text), minVersion: orNull(text), labels: map(text) });
const category = oneOf("USER_CODE", "DATA_QUALITY", "INFRASTRUCTURE", "CONFIGURATION", "TIMEOUT");
const backoff = object(
  {},
  {
    initialSeconds: number(0, 86_400),
    factor: number(1, 100),
    maxSeconds: number(0, 86_400),
    jitter: number(0, 1),
  },
);
const retry = object(
  {},
  { maxAttempts: integer(1, 1_000), backoff: orNull(backoff), categories: orNull(list(category)) },
);
const MAX_CPU = 1_000_000;

const node = object(
  { id: text, type: text },
  {
    package: orNull(object({ name: text }, { version: orNull(text) })),
    label: orNull(text),
    position: orNull(object({ x: number(-Infinity, Infinity), y: number(-Infinity, Infinity) }, {})),
    results: orNull(objects),
    schema: orNull(objects),
    ui: orNull(
      object(
        {},
        { inputPorts: orNull(list(port)), outputPorts: orNull(list(port)), widgets: orNull(list(widget)) },
      ),
    ),
    runtime: orNull(text),
    workerHints: orNull(hints),
    resources: orNull(
      object({}, { cpu: number(0, MAX_CPU), memoryBytes: integer(0, 2 ** 53), gpu: integer(0, MAX_CPU) }),
    ),
    retry: orNull(retry),
    timeoutSeconds: orNull(seconds),
    concurrencyKey: orNull(text),
    affinity: orNull(object({ key: text }, { mode: oneOf("sticky", "preferred") })),
    resourceRefs: list(
      object({ resourceId: text }, { workerId: orNull(text), type: orNull(text), scope: orNull(text) }),
    ),
    onResourceLost: orNull(oneOf("fail", "rebuild")),
    middlewares: list(text),
    onFailure: orNull(text),
    onCancel: orNull(text),
    when: orNull(text),
    disabled: flag,
    join: oneOf("all", "any", "all_done"),
    priority: orNull(priority),
    parent: orNull(text),
    map: orNull(
      object(
        { over: text },
        {
          concurrency: orNull(integer(1, 10_000)),
          item: orNull(text),
          collect: text,
          failurePolicy: oneOf("stop", "finish", "collect"),
        },
      ),
    ),
    container: orNull(object({}, { failurePolicy: oneOf("stop", "finish") })),
    call: orNull(
      object(
        { workflowId: text },
        { version: orNull(integer(1, Number.MAX_SAFE_INTEGER)), failurePolicy: oneOf("stop", "finish") },
      ),
    ),
    wait: orNull(object({}, { seconds: orNull(number(0, YEAR)), until: orNull(text) })),
    approval: orNull(
      object(
        {},
        {
          message: orNull(text),
          roles: list(text),
          form: orNull(objects),
          timeoutSeconds: orNull(seconds),
          default: orNull(oneOf("approve", "reject")),
        },
      ),
    ),
    signal: orNull(
      object({ name: text }, { timeoutSeconds: orNull(seconds), webhook: flag, secretRef: orNull(text) }),
    ),
  },
);

const edge = object({ source: end, target: end }, { id: orNull(text), when: orNull(text) });
const started = { id: orNull(text), disabled: flag, inputs: map(text), values: objects };
const TRIGGERS: Readonly<Record<string, Check>> = {
  manual: object({}, { id: orNull(text), disabled: flag }),
  cron: object(
    { expression: text },
    {
      timeZone: text,
      jitterSeconds: number(0, 86_400),
      overlap: oneOf("allow", "skip", "queue"),
      catchUp: oneOf("none", "last", "all"),
      maxCatchUp: integer(1, 1_000),
      ...started,
    },
  ),
  webhook: object(
    {},
    {
      path: orNull(text),
      methods: orNull(list(oneOf("GET", "POST", "PUT", "PATCH", "DELETE"))),
      secretRef: orNull(text),
      ...started,
    },
  ),
  workflow: object({ workflowId: text }, { on: list(oneOf("succeeded", "failed")), ...started }),
};

const trigger: Check = (given) => {
  if (!isParent(given) || given.kind !== "object") return expected("an object", given);
  const kind = given.children[placeOf(given, "type")]?.value;
  if (kind === undefined) return { pointer: "", message: "a required field is missing: type" };
  const check = kind.kind === "string" ? TRIGGERS[plainOf(kind) as string] : undefined;
  return check ? check(given) : { pointer: "/type", message: "there is no trigger of this type" };
};

const TOP: Fields = {
  id: text,
  schemaVersion: orNull(oneOf("2025-10")),
  metadata: orNull(
    object(
      {},
      { name: orNull(text), description: orNull(text), tags: list(text), environment: orNull(text) },
    ),
  ),
  runtimes: map(object({}, { workerHints: orNull(hints) })),
  tags: list(text),
  inputs: map(object({}, { schema: orNull(objects), required: flag, description: orNull(text) })),
  outputs: map(object({ source: end }, { schema: orNull(objects), description: orNull(text) })),
  triggers: list(trigger),
  priority,
  timeoutSeconds: orNull(seconds),
};
const LISTS: Fields = { nodes: node, edges: edge };

/** Report everything that has not the right shape; the other rules can be asked only where nothing has. */
export function checkShape(root: JsonNode, problems: Problems): void {
  if (!isParent(root) || root.kind !== "object") {
    problems.add("", "INVALID", "a definition is a JSON object");
    return;
  }
  for (const name of ["id", "nodes"]) {
    if (placeOf(root, name) < 0) problems.add("", "INVALID", `a required field is missing: ${name}`);
  }
  for (const [place, child] of root.children.entries()) {
    if (placeOf(root, child.key) !== place) continue;
    const item = Object.hasOwn(LISTS, child.key) ? LISTS[child.key] : undefined;
    if (item !== undefined) checkItems(child.value, item, `/${child.key}`, problems);
    else if (Object.hasOwn(TOP, child.key))
      report(TOP[child.key]?.(child.value) ?? null, `/${child.key}`, problems);
  }
}

function checkItems(given: JsonNode, item: Check, pointer: string, problems: Problems): void {
  if (!isParent(given) || given.kind !== "array") {
    report(expected("a list", given), pointer, problems);
    return;
  }
  given.children.forEach((child, place) => {
    report(item(child.value), `${pointer}/${place}`, problems);
  });
}

function report(found: Misfit | null, pointer: string, problems: Problems): void {
  if (found !== null) problems.add(pointer + found.pointer, "INVALID", found.message);
}
