/**
 * The JSON types that a JSON Schema allows at a path, as far as it plainly says so. What is not known fits everything.
 * The rules are those of `core/workflow/schema_shapes.py`.
 */

import type { Json, JsonFields } from "./json/tree";

export type TypeNames = ReadonlySet<string>;

const ALL = new Set(["null", "boolean", "number", "integer", "string", "array", "object"]);
const MAX_STEPS = 64;

const isFields = (value: Json | undefined): value is JsonFields =>
  value !== null && typeof value === "object" && !Array.isArray(value);

const own = (fields: JsonFields, key: string): Json | undefined =>
  Object.hasOwn(fields, key) ? fields[key] : undefined;

export function typesAt(schema: Json | undefined, path: readonly string[]): TypeNames | null {
  let here = followed(schema, schema);
  for (const step of path) here = followed(schema, below(here, step));
  return here === undefined ? null : typesOf(here);
}

export function mayFit(given: TypeNames | null, wanted: TypeNames | null): boolean {
  if (given === null || wanted === null) return true;
  for (const one of given) if (wanted.has(one)) return true;
  const isNumber = (types: TypeNames): boolean => types.has("number") || types.has("integer");
  return isNumber(given) && isNumber(wanted);
}

function followed(root: Json | undefined, start: Json | undefined): JsonFields | undefined {
  let here = start;
  for (let step = 0; step < MAX_STEPS; step += 1) {
    if (!isFields(here)) return undefined;
    const ref = own(here, "$ref");
    if (ref === undefined) return here;
    here = target(root, String(ref));
  }
  return undefined;
}

function target(root: Json | undefined, ref: string): Json | undefined {
  let here = root;
  for (const token of ref.split("/").slice(1)) {
    here = isFields(here) ? own(here, token.replaceAll("~1", "/").replaceAll("~0", "~")) : undefined;
  }
  return here;
}

function below(schema: JsonFields | undefined, step: string): Json | undefined {
  if (schema === undefined) return undefined;
  const members = own(schema, "properties");
  const types = typesOf(schema);
  const isArray = types !== null && types.size === 1 && types.has("array");
  if (/^[0-9]+$/.test(step) && (isArray || members === undefined)) {
    const first = own(schema, "prefixItems");
    if (Array.isArray(first) && Number(step) < first.length) return first[Number(step)] as Json;
    return own(schema, "items");
  }
  if (isFields(members) && Object.hasOwn(members, step)) return members[step];
  if (own(schema, "patternProperties") !== undefined) return undefined;
  return own(schema, "additionalProperties");
}

function typesOf(schema: JsonFields): TypeNames | null {
  const named = own(schema, "type");
  if (named !== undefined) {
    const names = typeof named === "string" ? [named] : Array.isArray(named) ? named.map(String) : [];
    const known = names.filter((name) => ALL.has(name));
    return known.length > 0 ? new Set(known) : null;
  }
  const constant = own(schema, "const");
  if (constant !== undefined) return new Set([typeOf(constant)]);
  const choices = own(schema, "enum");
  if (Array.isArray(choices) && choices.length > 0) return new Set(choices.map((one) => typeOf(one as Json)));
  return null;
}

export function typeOf(value: Json): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}
