/** What the workflow itself must keep: its id, its texts, its inputs, outputs and triggers. */

import { compilePath } from "../bindings";
import { UUID } from "./nodeRules";
import {
  lengthOf,
  MAX_DESCRIPTION_CHARS,
  MAX_KEY_CHARS,
  MAX_LABEL_CHARS,
  MAX_LIST_ITEMS,
  type Problems,
  pointerToken,
} from "./problems";
import { checkHints, isSecretName, type WorkerHints } from "./settingsRules";

const NAME = /^[A-Za-z_][A-Za-z0-9_-]*$/;
const TRIGGER_ID = /^[A-Za-z0-9][A-Za-z0-9_-]*$/;
const CRON =
  /^(?:@(?:hourly|daily|weekly|monthly|yearly)|[0-9A-Za-z*/,#-]{1,64}(?: [0-9A-Za-z*/,#-]{1,64}){4,5})$/;
const TIME_ZONE = /^[A-Za-z][A-Za-z0-9_+-]*(?:\/[A-Za-z0-9_+-]+){0,2}$/;
const WEBHOOK_PATH = /^[A-Za-z0-9_-]+(?:\/[A-Za-z0-9_-]+)*$/;
const MAX_TRIGGER_ID_CHARS = 64;
const SOURCES = {
  cron: ["scheduledAt", "trigger"],
  webhook: ["body", "headers", "query", "method"],
  workflow: ["runId", "workflowId", "status", "outputs"],
} as const;

interface Trigger {
  readonly type: "manual" | "cron" | "webhook" | "workflow";
  readonly id?: string | null;
  readonly expression?: string;
  readonly timeZone?: string;
  readonly path?: string | null;
  readonly methods?: readonly string[] | null;
  readonly secretRef?: string | null;
  readonly workflowId?: string;
  readonly on?: readonly string[];
  readonly inputs?: Readonly<Record<string, string>>;
  readonly values?: Readonly<Record<string, unknown>>;
}

export interface WorkflowHead {
  readonly id: string;
  readonly metadata?: {
    readonly name?: string | null;
    readonly description?: string | null;
    readonly environment?: string | null;
    readonly tags?: readonly string[];
  } | null;
  readonly tags?: readonly string[];
  readonly runtimes?: Readonly<Record<string, { readonly workerHints?: WorkerHints | null }>>;
  readonly inputs?: Readonly<Record<string, unknown>>;
  readonly outputs?: Readonly<
    Record<string, { readonly source: { readonly node: string; readonly port?: string | null } }>
  >;
  readonly triggers?: readonly Trigger[];
}

export function checkHead(workflow: WorkflowHead, problems: Problems): void {
  if (!UUID.test(workflow.id)) problems.add("/id", "BAD_ID", "the id of a workflow must be a UUID");
  const { metadata } = workflow;
  if (metadata?.name != null) problems.checkText("/metadata/name", metadata.name, MAX_LABEL_CHARS);
  if (metadata?.description != null) {
    problems.checkText("/metadata/description", metadata.description, MAX_DESCRIPTION_CHARS);
  }
  if (metadata?.environment != null) {
    problems.checkText("/metadata/environment", metadata.environment, MAX_LABEL_CHARS);
  }
  checkTexts(metadata?.tags ?? [], "/metadata/tags", problems);
  checkTexts(workflow.tags ?? [], "/tags", problems);
  checkRuntimes(workflow.runtimes ?? {}, problems);
  checkNames(Object.keys(workflow.inputs ?? {}), "/inputs", problems);
  checkNames(Object.keys(workflow.outputs ?? {}), "/outputs", problems);
  checkTriggers(workflow, problems);
}

function checkTexts(texts: readonly string[], pointer: string, problems: Problems): void {
  if (!problems.checkCount(pointer, texts.length, MAX_LIST_ITEMS)) return;
  texts.forEach((text, place) => {
    problems.checkKey(`${pointer}/${place}`, text, MAX_LABEL_CHARS);
  });
}

function checkRuntimes(runtimes: NonNullable<WorkflowHead["runtimes"]>, problems: Problems): void {
  const rows = Object.entries(runtimes);
  if (!problems.checkCount("/runtimes", rows.length, MAX_LIST_ITEMS)) return;
  for (const [name, runtime] of rows) {
    problems.checkKey("/runtimes", name, MAX_KEY_CHARS);
    if (runtime.workerHints != null) {
      checkHints(runtime.workerHints, `/runtimes/${pointerToken(name)}/workerHints`, problems);
    }
  }
}

function checkNames(names: readonly string[], pointer: string, problems: Problems): void {
  if (!problems.checkCount(pointer, names.length, MAX_LIST_ITEMS)) return;
  for (const name of names) {
    if (lengthOf(name) > MAX_KEY_CHARS || !NAME.test(name))
      problems.add(pointer, "BAD_TEXT", `not a name: ${name}`);
  }
}

function checkTriggers(workflow: WorkflowHead, problems: Problems): void {
  const triggers = workflow.triggers ?? [];
  if (!problems.checkCount("/triggers", triggers.length, MAX_LIST_ITEMS)) return;
  const counts = new Map<string, number>();
  const names = new Set<string>();
  const paths = new Set<string>();
  triggers.forEach((trigger, place) => {
    const pointer = `/triggers/${place}`;
    const count = (counts.get(trigger.type) ?? 0) + 1;
    counts.set(trigger.type, count);
    const name = trigger.id ?? `${trigger.type}-${count}`;
    if (name.length > MAX_TRIGGER_ID_CHARS || !TRIGGER_ID.test(name)) {
      problems.add(`${pointer}/id`, "BAD_ID", "not an id of letters, digits, - and _");
    } else if (names.has(name))
      problems.add(`${pointer}/id`, "DUPLICATE_ID", "another trigger has the same id");
    names.add(name);
    if (trigger.type === "webhook" && trigger.path != null) {
      if (paths.has(trigger.path))
        problems.add(`${pointer}/path`, "DUPLICATE_ID", "another trigger has the same path");
      paths.add(trigger.path);
    }
    checkTrigger(workflow, trigger, pointer, problems);
  });
}

function checkTrigger(workflow: WorkflowHead, trigger: Trigger, pointer: string, problems: Problems): void {
  const { type } = trigger;
  if (type === "manual") return;
  if (type === "cron") checkCron(trigger, pointer, problems);
  if (type === "webhook") checkWebhook(trigger, pointer, problems);
  if (type === "workflow") checkSource(workflow, trigger, pointer, problems);
  for (const field of ["inputs", "values"] as const) {
    const names = Object.keys(trigger[field] ?? {});
    if (!problems.checkCount(`${pointer}/${field}`, names.length, MAX_LIST_ITEMS)) return;
    for (const name of names) {
      if (Object.hasOwn(workflow.inputs ?? {}, name)) continue;
      const here = `${pointer}/${field}/${pointerToken(name.slice(0, 80))}`;
      problems.add(here, "INPUT", `the workflow declares no input of this name: ${name}`);
    }
  }
  for (const [name, path] of Object.entries(trigger.inputs ?? {})) {
    const here = `${pointer}/inputs/${pointerToken(name.slice(0, 80))}`;
    const compiled = compilePath(path);
    const sources: readonly string[] = SOURCES[type];
    if ("problem" in compiled) problems.add(here, "BAD_PATH", compiled.problem);
    else if (!sources.includes(compiled.path[0] ?? "")) {
      problems.add(here, "BAD_PATH", `a path begins with one of ${sources.join(", ")}`);
    }
  }
}

function checkCron(trigger: Trigger, pointer: string, problems: Problems): void {
  if (!CRON.test(trigger.expression ?? "")) {
    problems.add(`${pointer}/expression`, "BAD_TEXT", "not a schedule of five or six fields");
  }
  const zone = trigger.timeZone ?? "UTC";
  if (zone.length > MAX_KEY_CHARS || !TIME_ZONE.test(zone)) {
    problems.add(`${pointer}/timeZone`, "BAD_TEXT", "not the name of a time zone");
  }
}

function checkWebhook(trigger: Trigger, pointer: string, problems: Problems): void {
  const { path, methods, secretRef } = trigger;
  if (path != null && (path.length > MAX_LABEL_CHARS || !WEBHOOK_PATH.test(path))) {
    problems.add(`${pointer}/path`, "BAD_TEXT", "not a path of plain words");
  }
  if (methods != null && methods.length === 0)
    problems.add(`${pointer}/methods`, "BAD_TEXT", "name at least one method");
  if (secretRef != null && !isSecretName(secretRef)) {
    problems.add(`${pointer}/secretRef`, "BAD_TEXT", "not the name of a secret");
  }
}

function checkSource(workflow: WorkflowHead, trigger: Trigger, pointer: string, problems: Problems): void {
  const id = trigger.workflowId ?? "";
  if (!UUID.test(id)) problems.add(`${pointer}/workflowId`, "BAD_ID", "the id of a workflow must be a UUID");
  else if (id === workflow.id)
    problems.add(`${pointer}/workflowId`, "BAD_ID", "a workflow cannot start itself");
  if (trigger.on?.length === 0) problems.add(`${pointer}/on`, "BAD_TEXT", "name at least one status");
}
