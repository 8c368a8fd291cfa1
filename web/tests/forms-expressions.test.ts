import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { evaluate, plainPath } from "../src/forms/expressions/evaluation";
import { FUNCTIONS } from "../src/forms/expressions/functions";
import { type LastRun, namesFor, upstreamOf } from "../src/forms/expressions/names";
import { previewFrom } from "../src/forms/expressions/question";
import { completeAt, expressionScope, previewOf } from "../src/forms/expressions/scope";
import { NodeCatalog, type NodeType } from "../src/model/catalog";
import { nodesOf, openDocument } from "../src/model/document";
import catalogRows from "./fixtures/catalog.json";

const read = (path: string): string => readFileSync(new URL(path, import.meta.url), "utf8");
const catalog = new NodeCatalog(catalogRows as unknown as NodeType[]);
const example = openDocument(read("../../examples/expressions.json"));
const [cart, sum, bill] = nodesOf(example).map((node) => node.id) as [string, string, string];

const run: LastRun = {
  id: "r1",
  workflowId: "w1",
  createdAt: "2026-01-01T00:00:00Z",
  inputs: { name: "Ada" },
  steps: new Map([[cart, { results: { value: [{ name: "tea" }] }, error: undefined, state: "succeeded" }]]),
};

describe("the functions", () => {
  const rows = [
    ...read("../../docs/reference/expressions.md").matchAll(
      /^\| `(\w+)` \| (\d+)(?: to (\d+))? \| (.*) \|$/gm,
    ),
  ];

  it("are those of the scheduler, in its order and its words", () => {
    expect(rows.length).toBeGreaterThan(30);
    expect(FUNCTIONS.map((one) => [one.name, one.help])).toEqual(rows.map((row) => [row[1], row[4]]));
  });

  it.each(rows.map((row) => [row[1] as string, Number(row[2]), Number(row[3] ?? row[2])] as const))(
    "%s takes %i to %i arguments",
    (name, least, most) => {
      const parts = FUNCTIONS.find((one) => one.name === name)?.takes.split(", ") ?? [];
      expect(parts.filter((one) => !one.endsWith("?")).length).toBe(least);
      expect(parts.some((one) => one.endsWith("…")) ? 20 : parts.length).toBe(most);
    },
  );
});

describe("plain expressions", () => {
  const names = { inputs: { a: 1, "b c": [1, { d: "x" }], t: true, s: "text" } };

  it.each([
    ["inputs.a", 1],
    ['inputs["b c"][1].d', "x"],
    ["inputs['b c'][-2]", 1],
    ["  inputs . a  ", 1],
    ["true", true],
    ["None", null],
    ["42", 42],
    ["'text'", "text"],
    ['f"<{inputs.s}> {inputs.t}"', "<text> true"],
  ])("%s is evaluated", (text, value) => {
    expect(evaluate(text, names)).toEqual({ kind: "value", value });
  });

  it.each([
    "inputs.a + 1",
    "len(inputs.s)",
    'f"{inputs.a}"',
    'f"{{x}}"',
    "item",
    "1.5",
    "[1]",
    '"a" "b"',
    "inputs[a]",
    "",
  ])("%s is left to the scheduler", (text) => {
    expect(evaluate(text, names).kind).toBe("later");
  });

  it("tells what is missing", () => {
    expect(evaluate("inputs.x.y", names)).toEqual({ kind: "missing", name: "inputs.x.y" });
    expect(evaluate("inputs.__proto__", names).kind).toBe("missing");
  });

  it("are read as paths", () => {
    expect(plainPath('nodes["Two words"].results')).toEqual({
      root: "nodes",
      steps: ["Two words", "results"],
    });
    expect(plainPath("nodes.")).toBeNull();
  });
});

describe("names", () => {
  it("are the inputs and what is upstream", () => {
    expect(upstreamOf(example, bill).map((node) => node.label)).toEqual(
      expect.arrayContaining(["Cart", "Sum"]),
    );
    expect(upstreamOf(example, cart)).toEqual([]);
    const names = namesFor(example, catalog, run, { node: sum });
    expect(names.map((one) => one.name)).toEqual(["inputs", "nodes", "run"]);
    expect(names[0]?.members[0]).toMatchObject({ name: "name", detail: '"Ada"', info: "Who pays" });
  });

  it("have the item of a map, and of the maps around", () => {
    const map = openDocument(read("../../examples/map.json"));
    const mapped = nodesOf(map).find((node) => node.map != null);
    const names = namesFor(map, catalog, null, { node: mapped?.id ?? "" });
    expect(names.map((one) => one.name)).toEqual(expect.arrayContaining(["item", "index"]));
  });

  it("of an edge have the results of its source", () => {
    const edge = { source: { node: cart }, target: { node: sum } };
    const names = namesFor(example, catalog, run, { node: cart, edge });
    expect(names.map((one) => one.name)).toEqual(["inputs", "nodes", "run", "results", "error"]);
  });
});

describe("completion", () => {
  const names = namesFor(example, catalog, run, { node: bill });
  const labels = (before: string): readonly string[] | undefined =>
    completeAt(before, names)?.options.map((one) => one.label);

  it("begins with names and functions", () => {
    expect(labels("")).toEqual(expect.arrayContaining(["inputs", "nodes", "len", "sorted", "if"]));
    expect(completeAt("1 + le", names)?.from).toBe(4);
  });

  it("goes on with members, also those that only the last run has", () => {
    expect(labels("inputs.")).toEqual(["name"]);
    expect(labels("nodes.")).toEqual(expect.arrayContaining(["Cart", "Sum"]));
    expect(labels("len(nodes.Cart.results.va")).toEqual(["value"]);
    expect(labels("nodes.Cart.err")).toEqual(["results", "error", "state"]);
    expect(labels('nodes["Cart"].')).toEqual(["results", "error", "state"]);
  });

  it("puts labels that are no names into brackets", () => {
    const tree = [{ name: "nodes", detail: "", members: [{ name: "Two words", detail: "", members: [] }] }];
    expect(completeAt("nodes.", tree)).toMatchObject({ from: 5, options: [{ insert: '["Two words"]' }] });
  });

  it("has nothing inside of a text, but in the braces of a formatted one", () => {
    expect(completeAt('"inp', names)).toBeNull();
    expect(completeAt('f"a {inp', names)?.from).toBe(5);
  });
});

describe("the preview", () => {
  const scope = expressionScope(example, catalog, run, { node: sum });

  it("has the values of the last run", () => {
    expect(scope.preview("nodes.Cart.results.value[0].name")).toEqual({ kind: "value", value: "tea" });
    expect(scope.preview(`nodes["${cart}"].state`)).toEqual({ kind: "value", value: "succeeded" });
    expect(scope.preview("run.id")).toEqual({ kind: "value", value: "r1" });
  });

  it("says why there is none", () => {
    expect(scope.preview("sum([1])")).toEqual({ kind: "later" });
    expect(scope.preview("inputs.none")).toEqual({
      kind: "missing",
      reason: "The last run has no inputs.none",
    });
    expect(previewOf("inputs.a", null).kind).toBe("missing");
    expect(previewOf("secrets.key", null)).toMatchObject({ kind: "missing" });
  });
});

describe("what the scheduler is asked", () => {
  const scope = expressionScope(example, catalog, run, { node: sum });

  it("is the expression with the run, the step, and the names of the document that are in it", () => {
    expect(scope.question("len(nodes.Cart.results.value)")).toEqual({
      expression: "len(nodes.Cart.results.value)",
      runId: "r1",
      nodeId: sum,
      nodes: { Cart: cart },
    });
    expect(scope.question("1 + 1")?.nodes).toEqual({});
  });

  it("is nothing without a run", () => {
    expect(expressionScope(example, catalog, null, { node: sum }).question("1 + 1")).toBeNull();
  });

  it("has the result of the source of an edge, and is nothing if it is not here", () => {
    const edgeFrom = (id: string) => ({ source: { node: id }, target: { node: sum } });
    const known = expressionScope(example, catalog, run, { node: cart, edge: edgeFrom(cart) });
    expect(known.question("len(results) > 1")?.names).toEqual({
      results: run.steps.get(cart)?.results,
      error: null,
    });
    const other = expressionScope(example, catalog, run, { node: "x", edge: edgeFrom("x") });
    expect(other.question("len(results) > 1")).toBeNull();
  });

  it("is answered with a value, or why there is none", () => {
    expect(previewFrom({ value: [1], valueTruncated: false })).toEqual({ kind: "value", value: [1] });
    expect(previewFrom({ value: null, valueTruncated: false })).toEqual({ kind: "value", value: null });
    expect(previewFrom({ value: null, valueTruncated: true }).kind).toBe("missing");
    const error = { code: "E.WORKFLOW.EXPRESSION", message: "syntax error", position: 2 };
    expect(previewFrom({ value: null, valueTruncated: false, error })).toEqual({
      kind: "missing",
      reason: "syntax error",
    });
  });
});
