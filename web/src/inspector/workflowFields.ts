/** The settings of a workflow, as schemas of forms. A test holds them to `schemas/workflow.schema.json`. */

import { isFields } from "../forms/schema";
import type { Widget } from "../model/definition";
import type { Json, JsonFields } from "../model/json/tree";
import { texts } from "../texts";

const words = texts.forms.workflow;
type Described = { readonly title: string; readonly description: string };
const field = (described: Described, schema: JsonFields): JsonFields => ({ ...schema, ...described });
const choice = (
  described: Described,
  values: Readonly<Record<string, string>>,
  usual: string,
): JsonFields => ({
  ...described,
  enum: Object.keys(values),
  "x-labels": Object.values(values),
  default: usual,
});

/** Fields of a workflow that have parts of their own, or none. */
export const WORKFLOW_ELSEWHERE: Readonly<Record<string, string>> = {
  id: "it is how runs and triggers name the workflow",
  schemaVersion: "the scheduler reads one version only",
  nodes: "the canvas has them",
  edges: "the canvas has them",
  inputs: "a list of their own",
  outputs: "a list of their own",
  triggers: "a list of their own",
  runtimes: "a list of their own",
};

export const ABOUT: JsonFields = {
  type: "object",
  properties: {
    name: field(words.name, { type: "string", maxLength: 256 }),
    description: field(words.description, { type: "string", maxLength: 16_384 }),
    tags: field(words.tags, { type: "array", items: { type: "string" } }),
    environment: field(words.environment, { type: "string", maxLength: 256 }),
  },
};

export const RUNS: JsonFields = {
  type: "object",
  properties: {
    timeoutSeconds: field(words.timeout, {
      type: "number",
      exclusiveMinimum: 0,
      maximum: 31_622_400,
      "x-unit": "s",
    }),
    priority: field(words.priority, { type: "integer", minimum: -100, maximum: 100, default: 0 }),
    tags: field(words.runTags, { type: "array", items: { type: "string" } }),
  },
};

export const RUNTIME: JsonFields = {
  type: "object",
  properties: {
    workerHints: {
      type: "object",
      ...texts.forms.step.workerHints,
      properties: {
        labels: field(texts.forms.step.labels, { type: "object", additionalProperties: { type: "string" } }),
        package: field(texts.forms.step.hintPackage, { type: "string" }),
        minVersion: field(texts.forms.step.hintVersion, { type: "string" }),
      },
    },
  },
};

/** The fields of an input of the run. Its default is filled in as a run fills it in. */
export function inputSchema(schema: Json | undefined): JsonFields {
  const own = isFields(schema) ? schema : {};
  return {
    type: "object",
    properties: {
      schema: field(words.inputSchema, { "x-control": "json" }),
      default: { ...own, ...words.inputDefault },
      required: field(words.inputRequired, { type: "boolean", default: false }),
      description: field(words.inputDescription, { type: "string" }),
    },
  };
}

const TYPE_CHOICES: readonly Json[] = Object.entries(words.inputTypes).map(([value, label]) => ({
  value,
  label,
}));

export const INPUT_WIDGETS: readonly Widget[] = [
  { key: "description" },
  {
    key: "type",
    label: words.inputType.title,
    component: "enum",
    binding: { path: "parameters.schema.type" },
    options: { options: TYPE_CHOICES, help: words.inputType.description, placeholder: words.anyType },
  },
  { key: "required" },
  { key: "default" },
  { key: "schema", component: "json", options: { collapsed: true } },
];

export const OUTPUT: JsonFields = {
  type: "object",
  properties: {
    description: field(words.outputDescription, { type: "string" }),
    schema: field(words.outputSchema, { "x-control": "json" }),
  },
};

export const TRIGGER_TYPES = ["cron", "webhook", "workflow", "manual"] as const;
export type TriggerType = (typeof TRIGGER_TYPES)[number];

const COMMON: JsonFields = {
  id: field(words.triggerId, { type: "string", maxLength: 64 }),
  disabled: field(words.triggerDisabled, { type: "boolean", default: false }),
};
const GIVEN: JsonFields = {
  inputs: field(words.triggerInputs, { type: "object", additionalProperties: { type: "string" } }),
  values: field(words.triggerValues, { "x-control": "json", type: "object" }),
};

const OWN: Readonly<Record<TriggerType, JsonFields>> = {
  manual: {},
  cron: {
    expression: field(words.cron, { type: "string" }),
    timeZone: field(words.timeZone, { type: "string", default: "UTC", "x-control": "timeZone" }),
    overlap: choice(words.overlap, words.overlaps, "allow"),
    catchUp: choice(words.catchUp, words.catchUps, "last"),
    maxCatchUp: field(words.maxCatchUp, { type: "integer", minimum: 1, maximum: 1_000, default: 100 }),
    jitterSeconds: field(words.jitter, {
      type: "number",
      minimum: 0,
      maximum: 86_400,
      default: 0,
      "x-unit": "s",
    }),
  },
  webhook: {
    path: field(words.hookPath, { type: "string" }),
    methods: field(words.hookMethods, {
      type: "array",
      items: { enum: ["GET", "POST", "PUT", "PATCH", "DELETE"] },
      default: ["POST"],
    }),
    secretRef: field(words.hookSecret, { type: "string", "x-control": "secretName" }),
  },
  workflow: {
    workflowId: field(words.afterWorkflow, { type: "string", "x-control": "workflow" }),
    on: field(words.afterOn, {
      type: "array",
      items: { enum: ["succeeded", "failed"] },
      default: ["succeeded"],
    }),
  },
};
const REQUIRED: Readonly<Record<TriggerType, readonly string[]>> = {
  manual: [],
  cron: ["expression"],
  webhook: [],
  workflow: ["workflowId"],
};

/** The fields of a trigger, by its type. */
export function triggerSchema(type: TriggerType): JsonFields {
  const given = type === "manual" ? {} : GIVEN;
  return { type: "object", required: REQUIRED[type], properties: { ...OWN[type], ...COMMON, ...given } };
}

/** What a new trigger of a type begins with. */
export const NEW_TRIGGERS: Readonly<Record<TriggerType, JsonFields>> = {
  cron: { type: "cron", expression: "0 9 * * MON-FRI" },
  webhook: { type: "webhook" },
  workflow: { type: "workflow", workflowId: "" },
  manual: { type: "manual" },
};

/** Schedules that people often want. */
export const SCHEDULES: readonly (readonly [expression: string, label: string])[] = words.schedules;

/** Its id, or its type and place, as the scheduler names one without. */
export function triggerId(triggers: readonly Json[], place: number): string {
  const trigger = triggers[place];
  if (isFields(trigger) && typeof trigger.id === "string") return trigger.id;
  return `${isFields(trigger) ? String(trigger.type) : ""}-${place + 1}`;
}
