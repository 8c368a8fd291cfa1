/**
 * The settings of a step beside its parameters, as schemas of forms: each field of a node that the definition knows.
 * A test holds them to `schemas/workflow.schema.json`.
 */

import { isFields } from "../forms/schema";
import { CALL_TYPE, CONTAINER_TYPE, type NodeDefinition } from "../model/definition";
import { nodesOf, type WorkflowDocument } from "../model/document";
import type { Json, JsonFields } from "../model/json/tree";
import { texts } from "../texts";

export type SectionKey = "own" | "run" | "retry" | "map" | "placement" | "resources" | "compensation";

export interface Section {
  readonly key: SectionKey;
  readonly title: string;
  readonly help?: string;
  /** Where the value of the form is in the node; empty for the node itself. */
  readonly path: readonly string[];
  readonly schema: JsonFields;
}

/** Fields that other parts of the inspector, or the canvas, edit. */
export const FIELDS_ELSEWHERE: Readonly<Record<string, string>> = {
  id: "it is how edges and runs name the step",
  type: "a step of another type is another step",
  package: "the head has its version",
  label: "the head has it",
  position: "the canvas has it",
  parameters: "the settings of the type",
  results: "made by runs; a document may hold an example",
  schema: "of the type; the page about the step shows it",
  ui: "of the type",
  middlewares: "the list of middlewares has them",
};

const CATEGORIES = ["USER_CODE", "DATA_QUALITY", "INFRASTRUCTURE", "CONFIGURATION", "TIMEOUT"];
const SECONDS = { type: "number", exclusiveMinimum: 0, maximum: 31_622_400, "x-unit": "s" } as const;

const words = texts.forms.step;
type Described = { readonly title: string; readonly description: string };
const field = (described: Described, schema: JsonFields): JsonFields => ({ ...schema, ...described });
const group = (
  described: Described,
  properties: JsonFields,
  required: readonly string[] = [],
): JsonFields => ({
  type: "object",
  ...described,
  properties,
  ...(required.length > 0 ? { required } : {}),
});
const choice = (
  described: Described,
  values: Readonly<Record<string, string>>,
  usual?: string,
): JsonFields => ({
  ...described,
  enum: Object.keys(values),
  "x-labels": Object.values(values),
  ...(usual === undefined ? {} : { default: usual }),
});
const object = (properties: JsonFields): JsonFields => ({ type: "object", properties });

/** What a type of the scheduler needs besides parameters: one field of the node. */
function ownField(type: string): JsonFields | null {
  switch (type) {
    case "core.wait":
      return {
        wait: group(words.wait, {
          seconds: field(words.waitSeconds, {
            type: "number",
            minimum: 0,
            maximum: 31_622_400,
            "x-unit": "s",
          }),
          until: field(words.waitUntil, { type: "string", "x-expression": true }),
        }),
      };
    case "core.approval":
      return {
        approval: group(words.approval, {
          message: field(words.approvalMessage, { type: "string", maxLength: 16_384, "x-expression": true }),
          roles: field(words.approvalRoles, { type: "array", items: { type: "string" } }),
          form: field(words.approvalForm, { "x-control": "json" }),
          timeoutSeconds: field(words.waitTimeout, SECONDS),
          default: choice(words.approvalDefault, words.decisions),
        }),
      };
    case "core.signal":
      return {
        signal: group(
          words.signal,
          {
            name: field(words.signalName, { type: "string", "x-expression": true }),
            timeoutSeconds: field(words.waitTimeout, SECONDS),
            webhook: field(words.signalWebhook, { type: "boolean", default: false }),
            secretRef: field(words.signalSecret, { type: "string", "x-control": "secretName" }),
          },
          ["name"],
        ),
      };
    case CALL_TYPE:
      return {
        call: group(
          words.call,
          {
            workflowId: field(words.callWorkflow, { type: "string", "x-control": "workflow" }),
            version: field(words.callVersion, { type: "integer", minimum: 1 }),
            failurePolicy: choice(words.bodyPolicy, words.bodyPolicies, "finish"),
          },
          ["workflowId"],
        ),
      };
    case CONTAINER_TYPE:
      return {
        container: group(words.container, {
          failurePolicy: choice(words.bodyPolicy, words.bodyPolicies, "finish"),
        }),
      };
    default:
      return null;
  }
}

const RETRY = group(words.retry, {
  maxAttempts: field(words.maxAttempts, { type: "integer", minimum: 1, maximum: 1_000, default: 1 }),
  backoff: group(words.backoff, {
    initialSeconds: field(words.initialSeconds, {
      type: "number",
      minimum: 0,
      maximum: 86_400,
      default: 1,
      "x-unit": "s",
    }),
    factor: field(words.factor, { type: "number", minimum: 1, maximum: 100, default: 2 }),
    maxSeconds: field(words.maxSeconds, {
      type: "number",
      minimum: 0,
      maximum: 86_400,
      default: 60,
      "x-unit": "s",
    }),
    jitter: field(words.jitter, { type: "number", minimum: 0, maximum: 1, default: 0.2 }),
  }),
  categories: field(words.categories, { type: "array", items: { enum: CATEGORIES } }),
});

const MAP = group(
  words.map,
  {
    over: field(words.mapOver, { type: "string", "x-expression": true }),
    item: field(words.mapItem, { type: "string" }),
    concurrency: field(words.mapConcurrency, {
      type: "integer",
      minimum: 1,
      maximum: 10_000,
      default: 1_000,
    }),
    collect: field(words.mapCollect, { type: "string", default: "items" }),
    failurePolicy: choice(words.mapPolicy, words.mapPolicies, "stop"),
  },
  ["over"],
);

function runSchema(containers: JsonFields | null): JsonFields {
  return object({
    disabled: field(words.disabled, { type: "boolean", default: false }),
    when: field(words.when, { type: "string", "x-control": "condition" }),
    join: choice(words.join, words.joins, "all"),
    timeoutSeconds: field(words.timeout, SECONDS),
    priority: field(words.priority, { type: "integer", minimum: -100, maximum: 100 }),
    concurrencyKey: field(words.concurrencyKey, { type: "string", "x-expression": true }),
    ...(containers === null ? {} : { parent: field(words.parent, containers) }),
  });
}

const PLACEMENT = object({
  affinity: group(words.affinity, {
    key: field(words.affinityKey, { type: "string", "x-expression": true }),
    mode: choice(words.affinityMode, words.affinityModes, "sticky"),
  }),
  workerHints: group(words.workerHints, {
    labels: field(words.labels, { type: "object", additionalProperties: { type: "string" } }),
    package: field(words.hintPackage, { type: "string" }),
    minVersion: field(words.hintVersion, { type: "string" }),
  }),
  resources: group(words.resources, {
    cpu: field(words.cpu, { type: "number", minimum: 0, maximum: 1_000_000 }),
    memoryBytes: field(words.memory, { type: "integer", minimum: 0, maximum: 2 ** 53, "x-unit": "bytes" }),
    gpu: field(words.gpu, { type: "integer", minimum: 0, maximum: 1_000_000 }),
  }),
  runtime: field(words.runtime, { type: "string" }),
});

const RESOURCES = object({
  onResourceLost: choice(words.onResourceLost, words.lostPolicies),
  resourceRefs: field(words.resourceRefs, {
    type: "array",
    items: {
      type: "object",
      required: ["resourceId"],
      properties: {
        resourceId: field(words.resourceId, { type: "string" }),
        type: field(words.resourceType, { type: "string" }),
        workerId: field(words.resourceWorker, { type: "string" }),
        scope: field(words.resourceScope, { type: "string" }),
      },
    },
  }),
});

/** Other nodes, by their labels. */
export function nodeChoices(nodes: readonly NodeDefinition[]): JsonFields {
  return {
    enum: nodes.map((node) => node.id),
    "x-labels": nodes.map((node) => node.label ?? `${node.type} ${node.id.slice(0, 8)}`),
  };
}

const headed = (key: SectionKey, { title, description }: Described) => ({ key, title, help: description });

/** The settings that are of the type of a step, though they are no parameters: the wait of a wait. */
export function ownSection(node: NodeDefinition): Section | null {
  const [name, schema] = Object.entries(ownField(node.type) ?? {})[0] ?? [];
  if (name === undefined) return null;
  const described = schema as unknown as JsonFields & Described;
  return { ...headed("own", described), path: [name], schema: described };
}

/** The other sections for a step. What does not make sense for it is left out. */
export function sectionsFor(
  document: WorkflowDocument,
  node: NodeDefinition,
  isMiddleware: boolean,
  isOfScheduler: boolean,
): readonly Section[] {
  const others = nodesOf(document).filter((one) => one.id !== node.id);
  const containers = others.filter((one) => one.type === CONTAINER_TYPE);
  const undo = nodeChoices(others);
  const isPlaced = !isOfScheduler || node.workerHints != null || node.affinity != null;
  const made: (Section | null)[] = [
    {
      key: "run",
      title: words.sections.run,
      path: [],
      schema: runSchema(containers.length === 0 && node.parent == null ? null : nodeChoices(containers)),
    },
    isOfScheduler && node.retry == null
      ? null
      : { ...headed("retry", words.retry), path: ["retry"], schema: RETRY },
    isMiddleware ? null : { ...headed("map", words.map), path: ["map"], schema: MAP },
    isPlaced ? { key: "placement", title: words.sections.placement, path: [], schema: PLACEMENT } : null,
    isPlaced ? { key: "resources", title: words.sections.resources, path: [], schema: RESOURCES } : null,
    isMiddleware
      ? null
      : {
          key: "compensation",
          title: words.sections.compensation,
          path: [],
          schema: object({
            onFailure: field(words.onFailure, undo),
            onCancel: field(words.onCancel, undo),
          }),
        },
  ];
  return made.filter((one) => one !== null);
}

/** How many settings of a section are in the document. */
export function countSet(section: Section, node: NodeDefinition): number {
  const properties = section.schema.properties as JsonFields;
  const fields = section.path.reduce<Json | undefined>(
    (here, step) => (isFields(here) ? here[step] : undefined),
    node as unknown as Json,
  );
  if (!isFields(fields)) return 0;
  return Object.keys(properties).filter((key) => fields[key] !== undefined && fields[key] !== null).length;
}
