import { describe, expect, it } from "vitest";
import { evaluate } from "../src/forms/expressions/evaluation";
import type { LastRun } from "../src/forms/expressions/names";
import { valuesOf } from "../src/forms/expressions/scope";
import { forgetField, usableValues, useLastField, withReference } from "../src/forms/expressions/sources";
import { openDocument } from "../src/model/document";
import { treeRows } from "../src/values/treeRows";

const document = openDocument(
  JSON.stringify({
    nodes: [
      { id: "a", type: "t", label: "Two words" },
      { id: "b", type: "t", label: "B" },
      { id: "c", type: "t", label: "C" },
      { id: "d", type: "t", label: "D" },
    ],
    edges: [
      { source: { node: "a" }, target: { node: "b" } },
      { source: { node: "b" }, target: { node: "c" } },
      { source: { node: "c" }, target: { node: "d" } },
    ],
  }),
);
const ran = (results?: object) => ({ results: results as never, error: undefined, state: "succeeded" });
const run = (inputs?: object): LastRun => ({
  id: "r",
  workflowId: "w",
  createdAt: "",
  inputs: inputs as never,
  steps: new Map([
    ["a", ran({ rows: [{ "first name": "Ada" }] })],
    ["b", ran()],
    ["c", ran({ text: "later" })],
  ]),
});

describe("values of the steps before", () => {
  it("are those that have a result and come before, by the names of expressions", () => {
    expect(usableValues(document, run({ city: "Bern" }), "c")).toEqual({
      inputs: { city: "Bern" },
      nodes: { "Two words": { results: { rows: [{ "first name": "Ada" }] } } },
    });
    expect(usableValues(document, run(), "a")).toEqual({});
  });

  it("have paths that are expressions for the same value", () => {
    const values = usableValues(document, run({ city: "Bern" }), "d");
    const all = ["", "/inputs", "/nodes", "/nodes/Two words", "/nodes/Two words/results"];
    const deep = ["/nodes/Two words/results/rows", "/nodes/Two words/results/rows/0"];
    const rows = treeRows(values, { open: new Set([...all, ...deep]), pages: new Map(), search: "" });
    const names = valuesOf(document, run({ city: "Bern" }), undefined);
    const leaves = rows.filter((row) => row.kind === "leaf");
    expect(leaves.map((row) => row.path)).toEqual([
      "inputs.city",
      'nodes["Two words"].results.rows[0]["first name"]',
    ]);
    for (const row of leaves) expect(evaluate(row.path, names)).toEqual({ kind: "value", value: row.value });
  });
});

describe("a value that comes into a field", () => {
  it("takes the place of a plain value, and stands at the end of an expression", () => {
    expect(withReference(undefined, "inputs.a")).toBe("=inputs.a");
    expect(withReference("text", "inputs.a")).toBe("=inputs.a");
    expect(withReference("=", "inputs.a")).toBe("=inputs.a");
    expect(withReference("=1 + ", "inputs.a")).toBe("=1 + inputs.a");
  });

  it("goes to the field that had the focus last, as long as it is there", () => {
    const field = (id: string) => ({ id, label: id, take: () => undefined });
    useLastField.setState({ field: field("one") });
    forgetField("other");
    expect(useLastField.getState().field?.id).toBe("one");
    forgetField("one");
    expect(useLastField.getState().field).toBeNull();
  });
});
