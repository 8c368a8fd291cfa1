/** What a form reads of a JSON Schema: references followed, types, defaults, limits. */

import type { Json, JsonFields } from "../model/json/tree";

const MAX_STEPS = 64;

export const isFields = (value: Json | undefined | null): value is JsonFields =>
  value !== null && typeof value === "object" && !Array.isArray(value);

const own = (fields: JsonFields, key: string): Json | undefined =>
  Object.hasOwn(fields, key) ? fields[key] : undefined;

export const textOf = (value: Json | undefined): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined;

export const numberOf = (value: Json | undefined): number | undefined =>
  typeof value === "number" && Number.isFinite(value) ? value : undefined;

/** The schema behind references (`#/$defs/…`); what a reference stands beside is added to it. */
export function resolved(root: Json | undefined, schema: Json | undefined): JsonFields {
  let here: JsonFields = isFields(schema) ? schema : {};
  for (let step = 0; step < MAX_STEPS; step += 1) {
    const { $ref: ref, ...beside } = here;
    if (typeof ref !== "string") break;
    const target = targetOf(root, ref);
    here = { ...(isFields(target) ? target : {}), ...beside };
  }
  return here;
}

function targetOf(root: Json | undefined, ref: string): Json | undefined {
  let here = root;
  for (const token of ref.split("/").slice(1)) {
    here = isFields(here) ? own(here, token.replaceAll("~1", "/").replaceAll("~0", "~")) : undefined;
  }
  return here;
}

/**
 * Either X or null is shown as X: leaving the field empty says the same. Of `anyOf` with one real choice the choice
 * counts.
 */
export function plainSchema(root: Json | undefined, schema: Json | undefined): JsonFields {
  const here = resolved(root, schema);
  const choices = own(here, "anyOf") ?? own(here, "oneOf");
  if (!Array.isArray(choices)) return here;
  const real = choices.map((one) => resolved(root, one as Json)).filter((one) => own(one, "type") !== "null");
  const [only] = real;
  if (real.length !== 1 || only === undefined) return here;
  const { anyOf: _any, oneOf: _one, ...beside } = here;
  return { ...only, ...beside };
}

/** The types that are named, without null. */
export function typesOf(schema: JsonFields): readonly string[] {
  const named = own(schema, "type");
  const names = typeof named === "string" ? [named] : Array.isArray(named) ? named.map(String) : [];
  return names.filter((name) => name !== "null");
}

/** The only type that is named; undefined if there are none or several. */
export function typeName(schema: JsonFields): string | undefined {
  const types = typesOf(schema);
  if (types.length === 1) return types[0];
  return types.length === 2 && types.includes("integer") && types.includes("number") ? "number" : undefined;
}

/** The values that are allowed, without null. */
export function enumOf(schema: JsonFields): readonly Json[] | undefined {
  const listed = own(schema, "enum");
  if (Array.isArray(listed)) return listed.filter((one) => one !== null) as readonly Json[];
  return undefined;
}

export function defaultOf(schema: JsonFields): Json | undefined {
  const value = own(schema, "default");
  return value === null ? undefined : value;
}

export function propertiesOf(schema: JsonFields): readonly (readonly [string, Json])[] {
  const listed = own(schema, "properties");
  return isFields(listed) ? Object.entries(listed) : [];
}

export function requiredOf(schema: JsonFields): ReadonlySet<string> {
  const listed = own(schema, "required");
  return new Set(Array.isArray(listed) ? listed.filter((one) => typeof one === "string") : []);
}

/** The schema of what is at a path; an empty one where nothing is said. */
export function schemaAt(root: Json | undefined, path: readonly string[]): JsonFields {
  let here = plainSchema(root, root);
  for (const step of path) {
    const members = own(here, "properties");
    const below =
      isFields(members) && Object.hasOwn(members, step)
        ? members[step]
        : /^[0-9]+$/.test(step)
          ? own(here, "items")
          : own(here, "additionalProperties");
    here = plainSchema(root, below);
  }
  return here;
}

/** Whether the last member of a path is required by the object around it. */
export function isRequiredAt(root: Json | undefined, path: readonly string[]): boolean {
  const last = path.at(-1);
  return last !== undefined && requiredOf(schemaAt(root, path.slice(0, -1))).has(last);
}

/** `timeoutMs` as "Timeout ms", `api_key` as "Api key". */
export function labelOf(key: string): string {
  const words = key
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replace(/[_\-.]+/g, " ")
    .trim()
    .toLowerCase();
  return words === "" ? key : words[0]?.toUpperCase() + words.slice(1);
}
