import { readFileSync } from "node:fs";
import { lexer } from "marked";
import { describe, expect, it } from "vitest";
import { isSafeLink } from "../src/inspector/links";
import { countBelow, errorsBelow } from "../src/inspector/problems";
import { withoutAll } from "../src/inspector/removal";
import {
  ABOUT,
  inputSchema,
  NEW_TRIGGERS,
  OUTPUT,
  RUNS,
  RUNTIME,
  TRIGGER_TYPES,
  triggerId,
  triggerSchema,
  WORKFLOW_ELSEWHERE,
} from "../src/inspector/workflowFields";
import { moveAt, nodesOf, openDocument, setTextAt, textOf } from "../src/model/document";
import { freeName, moveMember, renameMember, setSetting } from "../src/model/edits/settings";
import type { JsonFields } from "../src/model/json/tree";

const read = (path: string): string => readFileSync(new URL(path, import.meta.url), "utf8");
const schema = JSON.parse(read("../../schemas/workflow.schema.json")) as {
  $defs: Record<string, { properties: JsonFields; allOf: readonly JsonFields[] }>;
  properties: Record<string, JsonFields>;
};
const keys = (given: JsonFields): string[] => Object.keys((given.properties ?? {}) as object).sort();

describe("the settings of a workflow", () => {
  it("have every field of the definition, or it is edited elsewhere", () => {
    const here = ["metadata", ...keys(RUNS), ...Object.keys(WORKFLOW_ELSEWHERE)];
    expect(here.sort()).toEqual(Object.keys(schema.properties).sort());
  });

  it("have every field of metadata, inputs, outputs and runtimes", () => {
    const of = (name: string): JsonFields => schema.properties[name]?.additionalProperties as JsonFields;
    expect(keys(ABOUT)).toEqual(keys(schema.properties.metadata as JsonFields));
    expect(keys(inputSchema(undefined))).toEqual(keys(of("inputs")));
    expect([...keys(OUTPUT), "source"].sort()).toEqual(keys(of("outputs")));
    expect(keys(RUNTIME)).toEqual(keys(of("runtimes")));
  });

  it.each(TRIGGER_TYPES)("have every field of a trigger of type %s", (type) => {
    const trigger = schema.$defs.trigger;
    const own = trigger?.allOf.find(
      (one) => (one.if as { properties: { type: JsonFields } }).properties.type.const === type,
    );
    const wanted = [...Object.keys(trigger?.properties ?? {}), ...keys((own?.then ?? {}) as JsonFields)];
    expect([...keys(triggerSchema(type)), "type"].sort()).toEqual([...new Set(wanted)].sort());
    expect(NEW_TRIGGERS[type].type).toBe(type);
  });

  it("name a trigger without an id as the scheduler does", () => {
    const triggers = [{ type: "cron", id: "daily" }, { type: "webhook" }];
    expect([0, 1].map((place) => triggerId(triggers, place))).toEqual(["daily", "webhook-2"]);
  });
});

describe("problems", () => {
  const problems = [
    { pointer: "/nodes/1/parameters/url", code: "E", message: "a" },
    { pointer: "/nodes/10/label", code: "E", message: "b" },
    { pointer: "/nodes/1", code: "E", message: "c" },
  ];
  it("belong to the place that they are at or below", () => {
    expect(errorsBelow(problems, "/nodes/1")).toEqual([
      { pointer: "/parameters/url", message: "a" },
      { pointer: "", message: "c" },
    ]);
    expect(countBelow(problems, "/nodes/10")).toBe(1);
  });
});

describe("edits of settings", () => {
  const text =
    '{\n  "inputs": {"a": {"default": 1.0}, "b": {}},\n  "nodes": [{"id": "x", "retry": {"maxAttempts": 2}}]\n}\n';
  const open = openDocument(text);

  it("leave no trace of a setting that came and went", () => {
    const set = setSetting(open, ["nodes", 0, "map", "over"], "=x", 2);
    expect(textOf(setSetting(set, ["nodes", 0, "map", "over"], undefined, 2))).toBe(text);
    const gone = setSetting(open, ["nodes", 0, "retry", "maxAttempts"], undefined, 2);
    expect(textOf(gone)).toContain('{"id": "x"}');
  });

  it("keep a row of a list without members, and the place of the form", () => {
    const rows = openDocument('{"p": {"rows": [{"a": 1}]}}');
    expect(textOf(setSetting(rows, ["p", "rows", "0", "a"], undefined, 1))).toBe('{"p": {"rows": [{}]}}');
    const only = openDocument('{"p": {"a": 1}}');
    expect(textOf(setSetting(only, ["p", "a"], undefined, 1))).toBe('{"p": {}}');
  });

  it("rename and move members with their bytes", () => {
    expect(textOf(renameMember(open, ["inputs"], "a", "c"))).toContain('"c": {"default": 1.0}');
    const moved = textOf(moveMember(open, ["inputs"], "b", 0));
    expect(moved.indexOf('"b"')).toBeLessThan(moved.indexOf('"a"'));
    expect(moved).toContain('{"default": 1.0}');
    expect(() => renameMember(open, ["inputs"], "a", "b")).toThrow("already");
    expect(moveMember(open, ["inputs"], "a", 0)).toBe(open);
  });

  it("move items with their bytes", () => {
    const list = openDocument('{"l": [1.0, 2e3, "x"]}');
    expect(textOf(moveAt(list, ["l"], 0, 2))).toBe('{"l": [2e3, "x", 1.0]}');
    expect(moveAt(list, ["l"], 1, 1)).toBe(list);
  });

  it("write what was typed as it was typed", () => {
    const typed = setTextAt(open, ["inputs", "b"], '{\n  "n": 1e400\n}');
    expect(textOf(typed)).toContain('"b": {\n      "n": 1e400\n    }');
    expect(setTextAt(open, ["inputs", "b"], "{}")).toBe(open);
  });

  it("find a free name", () => {
    expect(freeName(["input", "input_2"], "input")).toBe("input_3");
    expect(freeName([], "input")).toBe("input");
  });

  it("remove all that is selected", () => {
    const document = openDocument(read("../../examples/expressions.json"));
    const [first] = nodesOf(document);
    const left = withoutAll(document, new Set([first?.id ?? ""]));
    expect(nodesOf(left).some((node) => node.id === first?.id)).toBe(false);
  });
});

describe("help of packages", () => {
  it("links to web pages only", () => {
    expect(["https://a.example", "http://a", "mailto:a@b"].every(isSafeLink)).toBe(true);
    expect(["javascript:alert(1)", " JaVaScRiPt:x", "data:text/html,x", "/x", ""].some(isSafeLink)).toBe(
      false,
    );
  });

  it("is taken apart, so that HTML in it is a part of its own", () => {
    expect(lexer("<script>x</script>").map((token) => token.type)).toEqual(["html"]);
  });
});
