/**
 * The fields of a form, from the widgets of a type and from its JSON Schema. Pure: which control a field has is decided
 * here, and drawn elsewhere.
 */

import { compilePath } from "../model/bindings";
import type { BindingMode, Widget } from "../model/definition";
import type { Json, JsonFields } from "../model/json/tree";
import {
  defaultOf,
  enumOf,
  isFields,
  isRequiredAt,
  labelOf,
  numberOf,
  plainSchema,
  propertiesOf,
  requiredOf,
  schemaAt,
  textOf,
  typeName,
  typesOf,
} from "./schema";

/** The controls that there are. `date`, `time` and so on follow from the format of a text. */
export const CONTROLS = [
  "string",
  "text",
  "number",
  "slider",
  "boolean",
  "enum",
  "choices",
  "tags",
  "rows",
  "group",
  "pairs",
  "json",
  "code",
  "secret",
  "file",
  "date",
  "datetime",
  "time",
  "color",
  "timeZone",
  "condition",
  "secretName",
  "workflow",
] as const;
export type Control = (typeof CONTROLS)[number];

const KNOWN: ReadonlySet<string> = new Set(CONTROLS);
/** Other words for the same control. */
const ALIASES: Readonly<Record<string, Control>> = {
  textarea: "text",
  multiline: "text",
  integer: "number",
  select: "enum",
  multiselect: "choices",
  switch: "boolean",
  checkbox: "boolean",
  object: "json",
  array: "json",
  password: "secret",
};

export interface Choice {
  readonly label: string;
  readonly value: Json;
}

export interface Field {
  /** Once in a form. */
  readonly key: string;
  readonly label: string;
  readonly control: Control;
  /** Below the value of the form, or below the results. */
  readonly path: readonly string[];
  readonly root: "parameters" | "results";
  readonly mode: BindingMode;
  readonly schema: JsonFields;
  /** The whole schema, which references point into. */
  readonly schemaRoot: Json | undefined;
  readonly isRequired: boolean;
  readonly help?: string | undefined;
  readonly placeholder?: string | undefined;
  readonly unit?: string | undefined;
  readonly defaultValue?: Json | undefined;
  readonly choices?: readonly Choice[] | undefined;
  readonly min?: number | undefined;
  readonly max?: number | undefined;
  readonly step?: number | undefined;
  readonly rows?: number | undefined;
  readonly language?: string | undefined;
  readonly accept?: readonly string[] | undefined;
  readonly isCollapsed?: boolean | undefined;
  /** A setting, not a parameter, that may be an expression. */
  readonly mayBeExpression?: boolean | undefined;
  /** A component that nobody knows; the control is that of the schema. */
  readonly unknownComponent?: string | undefined;
  /** Why the field cannot be used: its path is none. */
  readonly problem?: string | undefined;
}

const LONG_CHARS = 60;
const MAX_SLIDER_STEPS = 200;
const FORMATS: Readonly<Record<string, Control>> = {
  date: "date",
  "date-time": "datetime",
  time: "time",
  color: "color",
};

/** The control that a schema asks for. */
export function controlOf(schema: JsonFields, root?: Json): Control {
  const named = controlNamed(textOf(schema["x-control"]));
  if (named !== undefined) return named;
  if (enumOf(schema) !== undefined || Object.hasOwn(schema, "const")) return "enum";
  switch (typeName(schema)) {
    case "boolean":
      return "boolean";
    case "integer":
    case "number":
      return isNarrow(schema) ? "slider" : "number";
    case "string":
      return textControl(schema);
    case "array":
      return listControl(schema, root);
    case "object":
      return objectControl(schema, root);
    default:
      return "json";
  }
}

/** A range in which a slider can meet each value. */
function isNarrow(schema: JsonFields): boolean {
  const { min, max, step } = limitsOf(schema, {});
  if (min === undefined || max === undefined) return false;
  if (step === undefined) return max - min === 1 && typeName(schema) === "number";
  return max > min && (max - min) / step <= MAX_SLIDER_STEPS && schema.multipleOf !== undefined;
}

function textControl(schema: JsonFields): Control {
  const format = textOf(schema.format);
  if (format !== undefined && FORMATS[format] !== undefined) return FORMATS[format];
  if (textOf(schema.contentMediaType) !== undefined) return "code";
  const value = schema.default;
  const isLong = typeof value === "string" && ([...value].length > LONG_CHARS || value.includes("\n"));
  return isLong || (numberOf(schema.maxLength) ?? 0) > 1_000 ? "text" : "string";
}

function listControl(schema: JsonFields, root: Json | undefined): Control {
  const items = plainSchema(root, schema.items);
  if (enumOf(items) !== undefined) return "choices";
  const type = typeName(items);
  if (type === "string" || type === "number" || type === "integer") return "tags";
  return type === "object" && propertiesOf(items).length > 0 ? "rows" : "json";
}

function objectControl(schema: JsonFields, root: Json | undefined): Control {
  if (propertiesOf(schema).length > 0) return "group";
  const values = plainSchema(root, schema.additionalProperties);
  return isFields(schema.additionalProperties) && typeName(values) === "string" ? "pairs" : "json";
}

interface Limits {
  readonly min?: number | undefined;
  readonly max?: number | undefined;
  readonly step?: number | undefined;
}

function limitsOf(schema: JsonFields, options: JsonFields): Limits {
  const isWhole = typeName(schema) === "integer";
  const above = numberOf(schema.exclusiveMinimum);
  const below = numberOf(schema.exclusiveMaximum);
  return {
    min:
      numberOf(options.min) ??
      numberOf(schema.minimum) ??
      (isWhole && above !== undefined ? above + 1 : above),
    max:
      numberOf(options.max) ??
      numberOf(schema.maximum) ??
      (isWhole && below !== undefined ? below - 1 : below),
    step: numberOf(options.step) ?? numberOf(schema.multipleOf) ?? (isWhole ? 1 : undefined),
  };
}

function choicesOf(schema: JsonFields, options: JsonFields, root: Json | undefined): readonly Choice[] {
  const listed = Array.isArray(options.options) ? (options.options as readonly Json[]) : undefined;
  if (listed !== undefined) {
    return listed.flatMap((one): Choice[] => {
      if (!isFields(one)) return one === null ? [] : [{ label: shown(one), value: one }];
      return one.value === undefined || one.value === null
        ? []
        : [{ label: textOf(one.label) ?? shown(one.value), value: one.value }];
    });
  }
  const items = typeName(schema) === "array" ? plainSchema(root, schema.items) : schema;
  const values = enumOf(items) ?? (items.const === undefined ? [] : [items.const]);
  const labels = Array.isArray(items["x-labels"]) ? (items["x-labels"] as readonly Json[]) : [];
  return values.map((value, place) => ({ label: textOf(labels[place]) ?? shown(value), value }));
}

const shown = (value: Json): string => (typeof value === "string" ? value : JSON.stringify(value));

function languageOf(schema: JsonFields, options: JsonFields): string | undefined {
  const media = textOf(schema.contentMediaType);
  return textOf(options.language) ?? media?.split("/").at(-1)?.replace(/^x-/, "");
}

function describe(
  given: Pick<Field, "key" | "label" | "path" | "root" | "mode" | "schema" | "schemaRoot" | "isRequired">,
  control: Control,
  options: JsonFields,
): Field {
  const { schema, schemaRoot } = given;
  const accept = Array.isArray(options.accept)
    ? options.accept.filter((one) => typeof one === "string")
    : undefined;
  return {
    ...given,
    control,
    isRequired: given.isRequired || options.required === true,
    mode: options.readOnly === true ? "read" : given.mode,
    help: textOf(options.helpText) ?? textOf(options.help) ?? textOf(schema.description),
    placeholder: textOf(options.placeholder),
    unit: textOf(options.unit) ?? textOf(schema["x-unit"]),
    defaultValue: defaultOf(options) ?? defaultOf(schema),
    choices: control === "enum" || control === "choices" ? choicesOf(schema, options, schemaRoot) : undefined,
    ...limitsOf(schema, options),
    rows: numberOf(options.rows),
    language: control === "code" ? languageOf(schema, options) : undefined,
    accept: accept as readonly string[] | undefined,
    isCollapsed: options.collapsed === true,
    mayBeExpression: schema["x-expression"] === true,
  };
}

/** The control of a widget: its component if it is one of ours, else that of the schema. */
export function controlNamed(component: string | null | undefined): Control | undefined {
  if (component == null) return undefined;
  if (KNOWN.has(component)) return component as Control;
  return ALIASES[component];
}

function fieldOfWidget(widget: Widget, root: Json | undefined): Field {
  const compiled = compilePath(widget.binding?.path ?? `parameters.${widget.key}`);
  const path = "path" in compiled ? compiled.path : ["parameters", widget.key];
  const where = path[0] === "results" ? "results" : "parameters";
  const below = path[0] === "results" || path[0] === "parameters" ? path.slice(1) : path;
  const schema = where === "parameters" ? schemaAt(root, below) : {};
  const named = controlNamed(widget.component);
  const control = named ?? (where === "results" ? "json" : controlOf(schema, root));
  const problem = "problem" in compiled ? compiled.problem : undefined;
  const field = describe(
    {
      key: widget.key,
      label: widget.label ?? textOf(schema.title) ?? labelOf(widget.key),
      path: below,
      root: where,
      mode: where === "results" ? "read" : (widget.binding?.mode ?? "two_way"),
      schema,
      schemaRoot: root,
      isRequired: where === "parameters" && isRequiredAt(root, below),
    },
    control,
    isFields(widget.options) ? widget.options : {},
  );
  const unknown = named === undefined && widget.component != null ? widget.component : undefined;
  return { ...field, unknownComponent: unknown, problem };
}

function fieldOfProperty(
  key: string,
  given: Json,
  isRequired: boolean,
  root: Json | undefined,
  path: readonly string[],
): Field {
  const schema = plainSchema(root, given);
  return describe(
    {
      key: [...path, key].join("/"),
      label: textOf(schema.title) ?? labelOf(key),
      path: [...path, key],
      root: "parameters",
      mode: schema.readOnly === true ? "read" : "two_way",
      schema,
      schemaRoot: root,
      isRequired,
    },
    controlOf(schema, root),
    {},
  );
}

/** The fields of the members of an object, as its schema has them. */
export function fieldsOfObject(
  schema: JsonFields,
  root: Json | undefined,
  path: readonly string[] = [],
): readonly Field[] {
  const required = requiredOf(schema);
  return propertiesOf(schema).map(([key, one]) => fieldOfProperty(key, one, required.has(key), root, path));
}

/**
 * All fields of a form: those of the widgets in their order, then the members of the schema that no widget shows, so
 * that nothing is out of reach.
 */
export function fieldsOf(schema: Json | undefined, widgets?: readonly Widget[] | null): readonly Field[] {
  const named = (widgets ?? []).filter((one) => typeof one?.key === "string");
  const made = unique(named.map((widget) => fieldOfWidget(widget, schema)));
  const shownHere = new Set(made.filter((one) => one.root === "parameters").map((one) => one.path[0] ?? ""));
  const rest = fieldsOfObject(plainSchema(schema, schema), schema);
  return [...made, ...rest.filter((one) => !shownHere.has(one.path[0] ?? ""))];
}

function unique(fields: readonly Field[]): Field[] {
  const seen = new Map<string, number>();
  return fields.map((field) => {
    const count = seen.get(field.key) ?? 0;
    seen.set(field.key, count + 1);
    return count === 0 ? field : { ...field, key: `${field.key}~${count}` };
  });
}

/** A member that nothing describes. */
export const strayField = (key: string, path: readonly string[]): Field => ({
  key: [...path, key].join("/"),
  label: key,
  control: "json",
  path: [...path, key],
  root: "parameters",
  mode: "two_way",
  schema: {},
  schemaRoot: undefined,
  isRequired: false,
});

/** Members of the value that no field shows: they are there, and are shown as JSON. */
export function strayKeys(fields: readonly Field[], value: Json | undefined): readonly string[] {
  if (!isFields(value)) return [];
  const known = new Set(fields.filter((one) => one.root === "parameters").map((one) => one.path[0]));
  return Object.keys(value).filter((key) => !known.has(key));
}

/** The control for the value that is there: one that cannot show it gives way to JSON. */
export function controlFor(field: Field, value: Json | undefined): Control {
  if (value === undefined || value === null) return field.control;
  return fits(field, value) ? field.control : "json";
}

function fits(field: Field, value: Json): boolean {
  switch (field.control) {
    case "string":
    case "text":
    case "code":
    case "date":
    case "datetime":
    case "time":
    case "color":
    case "timeZone":
    case "condition":
    case "secretName":
    case "workflow":
      return typeof value === "string";
    case "number":
    case "slider":
      return typeof value === "number";
    case "boolean":
      return typeof value === "boolean";
    case "tags":
      return Array.isArray(value) && value.every((one) => typeof one === "string" || typeof one === "number");
    case "choices":
      return Array.isArray(value);
    case "rows":
      return Array.isArray(value) && value.every((one) => isFields(one as Json));
    case "group":
      return isFields(value);
    case "pairs":
      return isFields(value) && Object.values(value).every((one) => typeof one === "string");
    case "enum":
    case "secret":
    case "file":
    case "json":
      return true;
  }
}

/** The control of a JSON field that can also be filled in as a form; undefined if it is JSON alone. */
export function formOf(field: Field): Control | undefined {
  if (field.control !== "json") return undefined;
  const control = controlOf(field.schema, field.schemaRoot);
  if (control !== "json") return control;
  return typeName(field.schema) === "object" && typesOf(field.schema).length === 1 ? "pairs" : undefined;
}
