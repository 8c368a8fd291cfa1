import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  CONTROLS,
  controlFor,
  controlNamed,
  controlOf,
  fieldsOf,
  formOf,
  strayKeys,
} from "../src/forms/fields";
import { labelOf } from "../src/forms/schema";
import { isSame, pointerOf, valueIn, withValue } from "../src/forms/values";
import type { Widget } from "../src/model/definition";
import { dedented, indented } from "../src/model/json/lines";
import type { Json, JsonFields } from "../src/model/json/tree";

const smoke = JSON.parse(
  readFileSync(new URL("../../examples/playwright-smoke.json", import.meta.url), "utf8"),
) as { nodes: { schema?: { parameters: Json }; ui: { widgets: Widget[] }; parameters: Json }[] };

const PAGE_SCHEMA = {
  type: "object",
  properties: {
    url: {
      type: "string",
      format: "uri",
      description: "Page URL opened by the node.",
      default: "https://example.com",
    },
    waitFor: {
      type: "string",
      enum: ["domcontentloaded", "load", "networkidle"],
      default: "domcontentloaded",
    },
    timeoutMs: { type: "integer", minimum: 0, maximum: 120000, default: 30000 },
  },
  required: ["url"],
};

describe("the control that a schema asks for", () => {
  const cases: readonly (readonly [JsonFields, string])[] = [
    [{ enum: ["a", "b"] }, "enum"],
    [{ type: "boolean" }, "boolean"],
    [{ type: "integer", minimum: 0 }, "number"],
    [{ type: "number", minimum: 0, maximum: 1 }, "slider"],
    [{ type: "integer", minimum: 0, maximum: 100, multipleOf: 5 }, "slider"],
    [{ type: "integer", minimum: 0, maximum: 120_000 }, "number"],
    [{ type: "string" }, "string"],
    [{ type: ["string", "null"] }, "string"],
    [{ anyOf: [{ type: "string" }, { type: "null" }] }, "json"],
    [{ type: "string", format: "date" }, "date"],
    [{ type: "string", format: "date-time" }, "datetime"],
    [{ type: "string", default: "one\ntwo" }, "text"],
    [{ type: "string", maxLength: 5_000 }, "text"],
    [{ type: "string", contentMediaType: "text/x-python" }, "code"],
    [{ type: "array", items: { type: "string" } }, "tags"],
    [{ type: "array", items: { enum: ["a"] } }, "choices"],
    [{ type: "array", items: { type: "object", properties: { a: {} } } }, "rows"],
    [{ type: "array" }, "json"],
    [{ type: "object", properties: { a: {} } }, "group"],
    [{ type: "object", additionalProperties: { type: "string" } }, "pairs"],
    [{ type: "object" }, "json"],
    [{}, "json"],
  ];
  it.each(cases)("%j is drawn as %s", (schema, control) => {
    expect(controlOf(schema)).toBe(control);
  });

  it("takes the one real choice of anyOf with null", () => {
    const schema = { type: "object", properties: { a: { anyOf: [{ type: "boolean" }, { type: "null" }] } } };
    expect(fieldsOf(schema).map((one) => one.control)).toEqual(["boolean"]);
  });

  it("follows references, also those that point at each other", () => {
    const schema = {
      $defs: { level: { enum: [1, 2] }, loop: { $ref: "#/$defs/loop" } },
      properties: { a: { $ref: "#/$defs/level", title: "Level" }, b: { $ref: "#/$defs/loop" } },
    };
    expect(fieldsOf(schema).map((one) => [one.label, one.control])).toEqual([
      ["Level", "enum"],
      ["B", "json"],
    ]);
  });
});

describe("the widgets of the seed", () => {
  it.each(smoke.nodes.map((node, place) => [place, node] as const))(
    "node %i shows each of its widgets with the component that it names",
    (_, node) => {
      const schema = node.schema?.parameters ?? PAGE_SCHEMA;
      const fields = fieldsOf(schema, node.ui.widgets);
      for (const widget of node.ui.widgets) {
        const field = fields.find((one) => one.key === widget.key);
        expect(field?.control).toBe(widget.component);
        expect(field?.label).toBe(widget.label);
        expect(field?.unknownComponent).toBeUndefined();
        expect(field?.help).toBe((widget.options as JsonFields).helpText);
        expect(field?.root).toBe(widget.binding?.path.split(".")[0]);
        expect(field?.mode).toBe(widget.binding?.mode);
      }
    },
  );

  it("has the options of each", () => {
    const fields = fieldsOf(PAGE_SCHEMA, smoke.nodes[0]?.ui.widgets);
    const [url, waitFor, timeout, status, page] = fields;
    expect(url).toMatchObject({ isRequired: true, placeholder: "https://example.com", path: ["url"] });
    expect(waitFor?.choices).toEqual([
      { label: "DOM Content Loaded", value: "domcontentloaded" },
      { label: "Page Load", value: "load" },
      { label: "Network Idle", value: "networkidle" },
    ]);
    expect(timeout).toMatchObject({
      min: 0,
      max: 120_000,
      step: 500,
      defaultValue: 30_000,
      isRequired: false,
    });
    expect(status).toMatchObject({ root: "results", mode: "read", path: ["status"] });
    expect(page).toMatchObject({ root: "results", isCollapsed: true, control: "json" });
    expect(fields).toHaveLength(5);
  });

  it("takes a choice that is a plain text", () => {
    const click = smoke.nodes[1];
    const fields = fieldsOf(click?.schema?.parameters, click?.ui.widgets);
    const button = fields.find((one) => one.key === "button");
    expect(button?.choices?.map((one) => one.label)).toEqual(["left", "right", "middle"]);
  });

  it("shows what the schema has and no widget names", () => {
    const click = smoke.nodes[1];
    const fields = fieldsOf(click?.schema?.parameters, click?.ui.widgets);
    expect(fields.at(-1)).toMatchObject({ key: "waitFor", control: "enum" });
  });
});

describe("the manifest of the seed", () => {
  interface ManifestNode {
    readonly type: string;
    readonly schema: { readonly parameters: Json };
    readonly ui: { readonly widgets: readonly Widget[] };
  }
  const { nodes } = JSON.parse(
    readFileSync(new URL("../../schemas/examples/valid/manifest/playwright.json", import.meta.url), "utf8"),
  ) as { nodes: readonly ManifestNode[] };

  it.each(nodes.map((node) => [node.type, node] as const))("draws all widgets of %s", (_, node) => {
    const fields = fieldsOf(node.schema.parameters, node.ui.widgets);
    expect(node.ui.widgets.length).toBeGreaterThan(0);
    expect(fields.slice(0, node.ui.widgets.length).map((one) => one.control)).toEqual(
      node.ui.widgets.map((one) => one.component),
    );
    expect(fields.every((one) => one.problem === undefined)).toBe(true);
  });
});

describe("widgets", () => {
  it("know every control by its own name", () => {
    for (const control of CONTROLS) expect(controlNamed(control)).toBe(control);
  });

  it.each(["string", "text", "number", "boolean", "enum", "json", "code", "secret", "file"])(
    "%s, which packages document, is known",
    (component) => {
      expect(controlNamed(component)).toBe(component);
    },
  );

  it("of an unknown component have the control of the schema, and say so", () => {
    const [field] = fieldsOf({ properties: { a: { type: "boolean" } } }, [{ key: "a", component: "x-dial" }]);
    expect(field).toMatchObject({ control: "boolean", unknownComponent: "x-dial" });
  });

  it("of the same key are two fields", () => {
    const fields = fieldsOf({}, [{ key: "a" }, { key: "a" }]);
    expect(new Set(fields.map((one) => one.key)).size).toBe(2);
  });

  it("with a path that is none say so", () => {
    const [field] = fieldsOf({}, [{ key: "a", binding: { path: "parameters..x" } }]);
    expect(field?.problem).toContain("not allowed");
  });

  it("of code have their language", () => {
    const [field] = fieldsOf({}, [{ key: "a", component: "code", options: { language: "python" } }]);
    expect(field).toMatchObject({ control: "code", language: "python" });
  });
});

describe("a value that the control cannot show", () => {
  it.each([
    ["number", "x"],
    ["boolean", 1],
    ["string", { a: 1 }],
    ["tags", [{ a: 1 }]],
    ["rows", [1]],
    ["pairs", { a: 1 }],
  ] as const)("%s with %j is shown as JSON", (component, value) => {
    const [field] = fieldsOf({}, [{ key: "a", component }]);
    expect(field && controlFor(field, value as Json)).toBe("json");
    expect(field && controlFor(field, undefined)).toBe(component);
  });

  it("is listed if nothing describes it", () => {
    expect(strayKeys(fieldsOf(PAGE_SCHEMA), { url: "x", other: 1 })).toEqual(["other"]);
  });
});

describe("a JSON field", () => {
  it.each([
    [{ type: "array", items: { type: "string" } }, "tags"],
    [{ type: "object" }, "pairs"],
    [{ type: "object", properties: { a: {} } }, "group"],
    [{}, undefined],
  ] as const)("of %j can be filled in as %s", (schema, control) => {
    const [field] = fieldsOf({ properties: { a: schema } } as unknown as Json, [
      { key: "a", component: "json" },
    ]);
    expect(field && formOf(field)).toBe(control);
  });
});

describe("values", () => {
  it("are set and removed at a path, and the rest stays the same object", () => {
    const value = { a: { b: [1, 2] }, c: { d: 1 } };
    const set = withValue(value, ["a", "b", "1"], 3) as typeof value;
    expect(set).toEqual({ a: { b: [1, 3] }, c: { d: 1 } });
    expect(set.c).toBe(value.c);
    expect(withValue(value, ["a", "b", "0"], undefined)).toEqual({ a: { b: [2] }, c: { d: 1 } });
    expect(withValue(value, ["c", "d"], undefined)).toEqual({ a: { b: [1, 2] }, c: {} });
    expect(withValue(undefined, ["x", "y"], 1)).toEqual({ x: { y: 1 } });
    expect(valueIn(set, ["a", "b", "1"])).toBe(3);
  });

  it("are compared by what they hold", () => {
    expect(isSame({ a: [1, { b: null }] }, { a: [1, { b: null }] })).toBe(true);
    expect(isSame({ a: 1 }, { a: 1, b: 2 })).toBe(false);
    expect(isSame([], {})).toBe(false);
  });

  it("have pointers", () => {
    expect(pointerOf(["a/b", "c~d", 0])).toBe("/a~1b/c~0d/0");
  });

  it("keep their lines when they leave their document and come back", () => {
    const text = '{\n      "a": 1.0,\n      "b": [\n        1e400\n      ]\n    }';
    expect(dedented(text)).toBe('{\n  "a": 1.0,\n  "b": [\n    1e400\n  ]\n}');
    expect(indented(dedented(text), "  ", 2)).toBe(text);
    expect(indented("[1]", "  ", 2)).toBe("[1]");
  });
});

describe("labels", () => {
  it.each([
    ["timeoutMs", "Timeout ms"],
    ["api_key", "Api key"],
    ["URL", "Url"],
    ["_", "_"],
  ])("%s is %s", (key, label) => {
    expect(labelOf(key)).toBe(label);
  });
});
