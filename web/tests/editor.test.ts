import { describe, expect, it } from "vitest";
import { chordOf, isSingle, wordsOf } from "../src/editor/chords";
import { differencesOf, unionOf } from "../src/editor/differences";
import {
  addAfter,
  addAround,
  addForWire,
  addOnEdge,
  addStep,
  fittingTypes,
  freeLabel,
} from "../src/editor/insertion";
import { readLayout, within } from "../src/editor/layout";
import { documentUpTo, emptyText, withNewIds } from "../src/editor/parts";
import { countByNode, joined, placeOf } from "../src/editor/problemPlaces";
import { categoriesOf, searchTypes } from "../src/editor/search";
import { editedSince } from "../src/editor/useEdited";
import { neighbourOf, reachOf } from "../src/editor/walking";
import { filteredRows, joinedRows, sortedRows } from "../src/editor/workflowRows";
import { NodeCatalog, type NodeType } from "../src/model/catalog";
import { edgesOf, nodesOf, openDocument, setAt, textOf, type WorkflowDocument } from "../src/model/document";
import { connect } from "../src/model/edits/edges";
import { addNode } from "../src/model/edits/nodes";

const object = (properties: Record<string, unknown>) => ({ type: "object", properties });

function typeOf(name: string, label: string, more: Partial<NodeType> = {}): NodeType {
  return {
    type: name,
    package: { name: name.split(".")[0] ?? "core", version: "1.0.0" },
    label,
    category: "Flow",
    schema: {
      parameters: object({ value: { type: "string" } }),
      results: object({ value: { type: "string" } }),
    } as never,
    ui: {
      inputPorts: [{ key: "value", binding: { path: "parameters.value" } }],
      outputPorts: [{ key: "value", binding: { path: "results.value" } }],
    },
    ...more,
  };
}

const ECHO = typeOf("core.echo", "Echo", { description: "Gives what it was given" });
const SLEEP = typeOf("core.sleep", "Sleep", { ui: { inputPorts: [], outputPorts: [] }, category: "Time" });
const RETRY = typeOf("core.retry", "Retry", { middleware: true, category: "Middleware" });
const SHOP = typeOf("shop.order", "Order of HTTP");
const CATALOG = new NodeCatalog([ECHO, SLEEP, RETRY, SHOP]);

const id = (number: number): string => `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;
const empty = (): WorkflowDocument => openDocument(emptyText(id(99), "Empty"));
const node = (
  document: WorkflowDocument,
  number: number,
  type = "core.echo",
  x = 0,
  y = 0,
): WorkflowDocument => addNode(document, { id: id(number), type, label: `n${number}`, position: { x, y } });
const wire = (document: WorkflowDocument, source: number, target: number): WorkflowDocument =>
  connect(document, { source: { node: id(source) }, target: { node: id(target) } });

describe("search", () => {
  it("finds by label, type, category, description and scattered letters, the best first", () => {
    expect(searchTypes(CATALOG.all, "ech").map((type) => type.type)).toEqual(["core.echo"]);
    expect(searchTypes(CATALOG.all, "slp").map((type) => type.type)).toEqual(["core.sleep"]);
    expect(searchTypes(CATALOG.all, "middle").map((type) => type.type)).toEqual(["core.retry"]);
    expect(searchTypes(CATALOG.all, "given")[0]?.type).toBe("core.echo");
    expect(searchTypes(CATALOG.all, "order http").map((type) => type.type)).toEqual(["shop.order"]);
    expect(searchTypes(CATALOG.all, "zzz")).toEqual([]);
    expect(searchTypes(CATALOG.all, " ")).toBe(CATALOG.all);
  });

  it("groups by category, both in order", () => {
    expect(categoriesOf(CATALOG.all).map((one) => [one.name, one.types.length])).toEqual([
      ["Flow", 2],
      ["Middleware", 1],
      ["Time", 1],
    ]);
  });
});

describe("walking", () => {
  const graph = wire(
    wire(node(node(node(empty(), 1), 2, "core.echo", 300), 3, "core.echo", 300, 200), 1, 2),
    1,
    3,
  );

  it("goes along edges, and up and down in a column", () => {
    expect(neighbourOf(graph, null, "right")).toBe(id(1));
    expect(neighbourOf(graph, id(1), "right")).toBe(id(2));
    expect(neighbourOf(graph, id(2), "left")).toBe(id(1));
    expect(neighbourOf(graph, id(2), "down")).toBe(id(3));
    expect(neighbourOf(graph, id(3), "up")).toBe(id(2));
    expect(neighbourOf(graph, id(1), "left")).toBeNull();
  });

  it("reaches everything before and after", () => {
    expect([...reachOf(graph, [id(3)], "upstream")].sort()).toEqual([id(1), id(3)]);
    expect([...reachOf(graph, [id(1)], "downstream")].sort()).toEqual([id(1), id(2), id(3)]);
  });
});

describe("insertion", () => {
  it("adds after a step and wires data where it fits, else order", () => {
    const first = addStep(empty(), { id: id(1), type: ECHO, at: { x: 0, y: 0 } });
    const [one] = nodesOf(first);
    if (one === undefined) throw new Error("no node");
    const second = addAfter(first, CATALOG, { id: id(2), type: ECHO }, one);
    expect(edgesOf(second)).toEqual([
      { source: { node: id(1), port: "value" }, target: { node: id(2), port: "value" } },
    ]);
    expect(nodesOf(second)[1]).toMatchObject({ label: "Echo 2", position: { x: 304, y: 0 } });
    const third = addAfter(second, CATALOG, { id: id(3), type: SLEEP }, one);
    expect(edgesOf(third)[1]).toEqual({ source: { node: id(1) }, target: { node: id(3) } });
    expect(nodesOf(third)[2]?.position).toEqual({ x: 304, y: 128 });
  });

  it("names the package of what is not core", () => {
    const made = addStep(empty(), { id: id(1), type: SHOP, at: { x: 0, y: 0 } });
    expect(nodesOf(made)[0]?.package).toEqual({ name: "shop", version: "1.0.0" });
    expect(freeLabel(made, "Order of HTTP")).toBe("Order of HTTP 2");
  });

  it("puts a step into an edge", () => {
    const two = connect(node(node(empty(), 1), 2), {
      source: { node: id(1), port: "value" },
      target: { node: id(2), port: "value" },
    });
    const made = addOnEdge(two, CATALOG, { id: id(3), type: ECHO, at: { x: 100, y: 0 } }, 0);
    expect(edgesOf(made)).toEqual([
      { source: { node: id(1), port: "value" }, target: { node: id(3), port: "value" } },
      { source: { node: id(3), port: "value" }, target: { node: id(2), port: "value" } },
    ]);
  });

  it("wires what is added at the end of a wire, in both directions", () => {
    const one = node(empty(), 1);
    const after = addForWire(
      one,
      CATALOG,
      { id: id(2), type: ECHO, at: { x: 9, y: 9 } },
      {
        node: id(1),
        port: "value",
        side: "source",
      },
    );
    expect(edgesOf(after)[0]?.target).toEqual({ node: id(2), port: "value" });
    const before = addForWire(
      one,
      CATALOG,
      { id: id(2), type: ECHO, at: { x: 9, y: 9 } },
      {
        node: id(1),
        port: "value",
        side: "target",
      },
    );
    expect(edgesOf(before)[0]).toEqual({
      source: { node: id(2), port: "value" },
      target: { node: id(1), port: "value" },
    });
  });

  it("offers no middleware for a wire, and first what takes the data", () => {
    const found = fittingTypes(node(empty(), 1), CATALOG, { node: id(1), port: "value", side: "source" });
    expect(found.map((type) => type.type)).toEqual(["core.echo", "shop.order", "core.sleep"]);
  });

  it("puts a middleware around a step", () => {
    const one = node(empty(), 1);
    const [host] = nodesOf(one);
    if (host === undefined) throw new Error("no node");
    const made = addAround(one, { id: id(2), type: RETRY }, host);
    expect(nodesOf(made)[0]?.middlewares).toEqual([id(2)]);
  });
});

describe("parts", () => {
  it("keeps what a step needs, with its middlewares and the outputs that are left", () => {
    let graph = wire(wire(node(node(node(empty(), 1), 2), 3), 1, 2), 2, 3);
    graph = setAt(graph, ["outputs"], {
      end: { source: { node: id(3) } },
      middle: { source: { node: id(2) } },
    });
    const part = documentUpTo(graph, [id(2)]);
    expect(nodesOf(part).map((one) => one.id)).toEqual([id(1), id(2)]);
    expect(edgesOf(part)).toHaveLength(1);
    expect(textOf(part)).toContain('"middle"');
    expect(textOf(part)).not.toContain('"end"');
  });

  it("gives a copy ids of its own, and leaves all other bytes", () => {
    const text = `{"id": "${id(1)}",  "nodes":[{"id":"${id(2)}","type":"core.echo","n":1.0}],"edges":[]}`;
    let next = 50;
    const copy = withNewIds(text, () => id(next++));
    expect(copy.id).toBe(id(50));
    expect(copy.text).toBe(text.replace(id(1), id(50)).replace(id(2), id(51)));
  });
});

describe("differences", () => {
  it("names what was added, removed, changed and moved, and draws all of it", () => {
    const before = wire(node(node(node(empty(), 1), 2), 3), 1, 2);
    let after = node(openDocument(textOf(before)), 4);
    after = setAt(after, ["nodes", 0, "label"], "other");
    after = setAt(after, ["nodes", 1, "position"], { x: 8, y: 8 });
    after = openDocument(
      textOf(after).replace(new RegExp(`,\\s*\\{\\s*"id": "${id(3)}"[^}]*\\}[^}]*\\}[^}]*\\}`), ""),
    );
    const found = differencesOf(before, after);
    expect(found.steps.map((step) => [step.kind, step.label])).toEqual([
      ["changed", "other"],
      ["moved", "n2"],
      ["added", "n4"],
      ["removed", "n3"],
    ]);
    expect(found.steps[0]?.fields).toEqual([{ field: "label", before: "n1", after: "other" }]);
    expect(nodesOf(unionOf(before, after)).map((one) => one.id)).toEqual([id(1), id(2), id(4), id(3)]);
    expect(differencesOf(before, openDocument(textOf(before))).isEqual).toBe(true);
  });

  it("names edges and settings", () => {
    const before = wire(node(node(empty(), 1), 2), 1, 2);
    const after = setAt(wire(node(node(empty(), 1), 2), 2, 1), ["metadata", "name"], "New");
    const found = differencesOf(before, after);
    expect([...found.edges.values()].sort()).toEqual(["added", "removed"]);
    expect(found.settings).toEqual([{ field: "metadata.name", before: "Empty", after: "New" }]);
  });
});

describe("steps that were edited after a run", () => {
  it("are those that would run in another way", () => {
    const before = node(node(empty(), 1), 2);
    let now = setAt(before, ["nodes", 0, "position"], { x: 80, y: 0 });
    now = node(setAt(now, ["nodes", 1, "parameters"], { value: 1 }), 3);
    expect([...editedSince(before, now)]).toEqual([id(2)]);
    expect(editedSince(null, now).size).toBe(0);
  });
});

describe("problems", () => {
  const graph = wire(node(node(empty(), 1), 2), 1, 2);
  const problem = (pointer: string) => ({ pointer, code: "E.X", message: "wrong" });

  it("finds the step, the field and the edge", () => {
    expect(placeOf(problem("/nodes/1/parameters/a~1b"), graph)).toEqual({
      id: id(2),
      label: "n2",
      field: "parameters.a/b",
    });
    expect(placeOf(problem("/edges/0"), graph).label).toBe("n1 → n2");
    expect(placeOf(problem("/inputs/city"), graph)).toEqual({ id: null, label: null, field: "inputs.city" });
  });

  it("counts errors by step, and tells what two have found once", () => {
    const all = joined(
      [problem("/nodes/0")],
      [
        { ...problem("/nodes/0"), severity: "error" },
        { ...problem("/nodes/1"), severity: "warning" },
      ],
    );
    expect(all).toHaveLength(2);
    expect([...countByNode(all, graph)]).toEqual([[id(1), 1]]);
  });
});

describe("keys", () => {
  const press = (key: string, more: object = {}) => ({
    key,
    code: "",
    ctrlKey: false,
    metaKey: false,
    altKey: false,
    shiftKey: false,
    ...more,
  });

  it("have one name each", () => {
    expect(chordOf(press("z", { ctrlKey: true }))).toBe("Mod+Z");
    expect(chordOf(press("Z", { metaKey: true, shiftKey: true }))).toBe("Mod+Shift+Z");
    expect(chordOf(press("?", { shiftKey: true }))).toBe("?");
    expect(chordOf(press("¬", { altKey: true, shiftKey: true, code: "KeyL" }))).toBe("Alt+Shift+L");
    expect(chordOf(press("ArrowLeft", { shiftKey: true }))).toBe("Shift+ArrowLeft");
    expect(isSingle("N")).toBe(true);
    expect(isSingle("F2")).toBe(false);
    expect(wordsOf("Mod+Shift+Z", false)).toBe("Ctrl Shift Z");
    expect(wordsOf("+", true)).toBe("+");
  });
});

describe("regions", () => {
  it("keep to their limits, whatever was kept", () => {
    expect(within("palette", 1000)).toBe(320);
    expect(readLayout("nonsense").inspector).toEqual({ size: 320, isOpen: true });
    expect(readLayout('{"dock":{"size":10,"isOpen":true}}').dock).toEqual({ size: 160, isOpen: true });
  });
});

describe("rows of the list", () => {
  const versions = [{ id: "a", name: "Alpha", version: 2, updatedAt: "2026-01-01", updatedBy: "ann" }];
  const drafts = [
    { id: "a", name: "Alpha 2", baseVersion: 2, updatedAt: "2026-01-03", updatedBy: "bob" },
    { id: "b", name: "Beta", baseVersion: 0, updatedAt: "2026-01-02", updatedBy: "ann" },
  ];

  it("are one for each workflow, and sorted and found", () => {
    const rows = joinedRows(versions, drafts);
    expect(rows.map((row) => [row.name, row.version, row.hasDraft])).toEqual([
      ["Alpha 2", 2, true],
      ["Beta", 0, true],
    ]);
    expect(sortedRows(rows, { key: "changed", isDescending: false })[0]?.id).toBe("b");
    expect(filteredRows(rows, "bet")).toHaveLength(1);
  });
});
