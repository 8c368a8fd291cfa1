/** The declared inputs of a workflow as one form. */

import type { Json, JsonFields } from "../model/json/tree";

const fieldsIn = (value: Json | undefined): JsonFields =>
  value !== null && typeof value === "object" && !Array.isArray(value) ? (value as JsonFields) : {};

/** A schema of an object with a member for each input. */
export function inputSchema(declared: JsonFields): Json {
  const properties: Record<string, Json> = {};
  const required: string[] = [];
  for (const [name, given] of Object.entries(declared)) {
    const { schema, description, default: usual, required: isRequired } = fieldsIn(given);
    properties[name] = {
      ...fieldsIn(schema),
      ...(typeof description === "string" ? { description } : {}),
      ...(usual == null ? {} : { default: usual }),
    };
    if (isRequired === true) required.push(name);
  }
  return { type: "object", properties, required };
}

/** What they are if nobody says otherwise. */
export function usualInputs(declared: JsonFields): Json {
  const values: Record<string, Json> = {};
  for (const [name, given] of Object.entries(declared)) {
    const { default: usual } = fieldsIn(given);
    if (usual != null) values[name] = usual;
  }
  return values;
}
