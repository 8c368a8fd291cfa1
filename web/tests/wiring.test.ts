import { describe, expect, test } from "vitest";
import { hintOf, wireFitOf } from "../src/canvas/wireFit";
import { NodeCatalog } from "../src/model/catalog";
import { nodesOf, openDocument, setAt } from "../src/model/document";
import { layoutChosen, layoutDocument } from "../src/model/layout";
import { portsOf } from "../src/model/ports";
import { mayFit, typesAt } from "../src/model/schemaTypes";
import { BOX_BORDER, GRID, USUAL_SIZE } from "../src/model/sizes";
import { Wiring } from "../src/model/wiring";
import { BODIES, CATALOG, EVERYTHING, SEED } from "./examples";

const TYPE = {
  type: "t.step",
  package: { name: "t", version: "1.0" },
  label: "Step",
  category: "",
  schema: {
    parameters: {
      properties: { text: { type: "string" }, list: { type: "array", items: { type: "integer" } } },
    },
    results: { properties: { text: { type: "string" }, count: { type: "integer" }, any: {} } },
  },
  ui: {
    inputPorts: [{ key: "text" }, { key: "list", multiple: true }],
    outputPorts: [{ key: "text" }, { key: "count" }, { key: "any" }],
  },
} as const;
const catalog = new NodeCatalog([TYPE]);
const node = (id: string, more = ""): string => `{"id":"${id}","type":"t.step"${more}}`;
const edge = (source: string, target: string): string => `{"source":${source},"target":${target}}`;
const of = (nodes: string[], edges: string[] = []): Wiring =>
  new Wiring(openDocument(`{"nodes":[${nodes}],"edges":[${edges}]}`), catalog);
const end = (id: string, port?: string): { node: string; port?: string } => ({
  node: id,
  ...(port ? { port } : {}),
});

describe("wires", () => {
  const two = of([node("a"), node("b")]);

  test("types that fit, that do not, and that nobody knows", () => {
    expect(two.check(end("a", "text"), end("b", "text"))).toEqual({ fits: true, replaces: false });
    expect(two.check(end("a", "count"), end("b", "text"))).toEqual({
      fits: false,
      reason: "This brings integer, and the port takes string",
    });
    expect(two.check(end("a", "any"), end("b", "text")).fits).toBe(true);
    expect(two.check(end("a", "error"), end("b", "text")).fits).toBe(true);
    expect(two.check(end("a", "count"), end("b")).fits).toBe(true);
    expect(two.check(end("a", "count"), end("b", "list")).fits).toBe(true);
    expect(two.check(end("a", "text"), end("b", "list")).fits).toBe(false);
  });

  test.each([
    [end("a"), end("a"), "itself"],
    [end("a", "nothing"), end("b"), "no such port"],
    [end("x"), end("b"), "no such port"],
  ])("%j to %j", (source, target, reason) => {
    expect(two.check(source, target)).toMatchObject({ fits: false, reason: expect.stringContaining(reason) });
  });

  test("circles, borders and middlewares", () => {
    const wired = of(
      [
        node("a", ',"middlewares":["m"]'),
        node("b"),
        node("c"),
        node("m"),
        '{"id":"x","type":"core.container"}',
        node("i", ',"parent":"x"'),
      ],
      [edge('{"node":"a"}', '{"node":"b"}'), edge('{"node":"b"}', '{"node":"c"}')],
    );
    expect(wired.check(end("c"), end("a"))).toMatchObject({ reason: expect.stringContaining("circle") });
    expect(wired.check(end("a"), end("i"))).toMatchObject({ reason: expect.stringContaining("border") });
    expect(wired.check(end("m"), end("b"))).toMatchObject({ reason: expect.stringContaining("middleware") });
  });

  test("a port that is taken is replaced, one that takes several is not", () => {
    const wired = of(
      [node("a"), node("b"), node("c")],
      [
        edge('{"node":"a","port":"text"}', '{"node":"b","port":"text"}'),
        edge('{"node":"a","port":"count"}', '{"node":"b","port":"list"}'),
      ],
    );
    expect(wired.check(end("c", "text"), end("b", "text"))).toEqual({ fits: true, replaces: true });
    expect(wired.check(end("c", "count"), end("b", "list"))).toEqual({ fits: true, replaces: false });
    expect(wired.firstFit(end("c", "text"), "b")).toEqual({ node: "b" });
    expect(wired.firstFit(end("c", "text"), "a")).toEqual({ node: "a", port: "text" });
    expect(wired.firstFit(end("a"), "a")).toBeNull();
  });
});

describe("a wire that is dropped on a step", () => {
  const box = '{"id":"box","type":"core.container","ui":{"inputPorts":[{"key":"in"}],"outputPorts":[]}}';
  const wired = of(
    [node("a"), node("b"), node("c"), box, node("i", ',"parent":"box"'), node("j", ',"parent":"box"')],
    [edge('{"node":"a","port":"text"}', '{"node":"b","port":"text"}')],
  );
  const from = (id: string, port: string, side: "source" | "target" = "source") => ({ node: id, port, side });
  const dropped = (open: ReturnType<typeof from>, on: string | null) => {
    const drop = wired.dropOn(open, on);
    return drop.kind === "fits" ? [drop.port.key, drop.replaces] : drop.kind;
  };

  test("goes to the first port that fits and is free, else to the order of the steps", () => {
    expect(dropped(from("a", "text"), "c")).toEqual(["text", false]);
    expect(dropped(from("a", "count"), "c")).toEqual(["list", false]);
    expect(dropped(from("c", "text"), "b")).toEqual(["trigger", false]);
    expect(dropped(from("a", "done"), "c")).toEqual(["trigger", false]);
    expect(dropped(from("a", "error"), "c")).toEqual(["trigger", false]);
    expect(dropped(from("c", "text", "target"), "a")).toEqual(["text", false]);
    expect(dropped(from("b", "text", "target"), "c")).toEqual(["text", true]);
    expect(dropped(from("c", "trigger", "target"), "a")).toEqual(["done", false]);
  });

  test("is refused with the reason, and given up on its own step", () => {
    expect(wired.dropOn(from("b", "text"), "a")).toEqual({
      kind: "refused",
      reason: "The edge would close a circle",
    });
    expect(wired.dropOn(from("a", "text"), "i")).toMatchObject({
      reason: expect.stringContaining("border"),
    });
    expect(dropped(from("a", "text"), "a")).toBe("back");
  });

  test("is on the empty canvas inside of its own container, and outside of all steps", () => {
    expect(dropped(from("i", "text"), "box")).toBe("canvas");
    expect(dropped(from("box", "inside:in"), "box")).toBe("canvas");
    expect(dropped(from("box", "inside:in"), "j")).toEqual(["text", false]);
    expect(dropped(from("a", "text"), "box")).toEqual(["in", false]);
    expect(dropped(from("a", "text"), "a-note")).toBe("canvas");
    expect(dropped(from("a", "text"), null)).toBe("canvas");
  });

  test("lights the steps that take it, and tells at the pointer what a drop would do", () => {
    const wire = { open: from("b", "text"), wiring: wired, over: "c" };
    expect(wireFitOf({ wire: null }, "c")).toBeUndefined();
    expect(["a", "b", "c", "box"].map((id) => wireFitOf({ wire }, id))).toEqual([
      "no",
      undefined,
      "next",
      "yes",
    ]);
    expect(hintOf(wire, null)).toEqual({ fits: true, text: "Connect to text" });
    expect(hintOf({ ...wire, over: "a" }, null)).toEqual({
      fits: false,
      text: "The edge would close a circle",
    });
    expect(hintOf({ ...wire, over: null }, null)).toBeNull();
    const taken = { ...wire, open: from("c", "text") };
    expect(hintOf({ ...taken, over: "b" }, null)?.text).toContain("order only");
    expect(hintOf(taken, { nodeId: "c", id: "text" })).toBeNull();
    const number = { ...wire, open: from("a", "count") };
    expect(hintOf(number, { nodeId: "c", id: "text" })?.text).toContain("takes string");
  });
});

describe("ports", () => {
  test("the seed draws all its ports, those of every node included", () => {
    const [first, second] = nodesOf(openDocument(SEED));
    const of = (one: typeof first): string[][] => {
      const ports = portsOf(one as NonNullable<typeof first>, undefined);
      return [[...ports.inputs.keys()], [...ports.outputs.keys()]];
    };
    for (const one of [first, second]) {
      const declared = one?.ui;
      const [inputs, outputs] = of(one);
      expect(inputs).toEqual(
        expect.arrayContaining(["trigger", ...(declared?.inputPorts ?? []).map((port) => port.key)]),
      );
      expect(outputs).toEqual(
        expect.arrayContaining(["done", "error", ...(declared?.outputPorts ?? []).map((port) => port.key)]),
      );
    }
  });

  test("cases and maps have outputs of their own", () => {
    const choice = {
      id: "n",
      type: "core.switch",
      parameters: {
        cases: [
          { port: "a", equals: 1 },
          { port: "b", equals: 2 },
        ],
        default: "c",
      },
    };
    expect([...portsOf(choice, undefined).outputs.keys()]).toEqual(["done", "error", "a", "b", "c"]);
    const mapped = { id: "n", type: "t.step", map: { over: "list", collect: "all" } };
    expect([...portsOf(mapped, TYPE).outputs.keys()]).toContain("all");
  });

  test("references of schemas are followed, and a circle of them ends", () => {
    const schema = {
      $defs: { a: { type: "string" }, b: { $ref: "#/$defs/b" } },
      properties: { x: { $ref: "#/$defs/a" }, y: { $ref: "#/$defs/b" } },
    };
    expect([...(typesAt(schema, ["x"]) ?? [])]).toEqual(["string"]);
    expect(typesAt(schema, ["y"])).toBeNull();
    expect(typesAt(schema, ["constructor"])).toBeNull();
    expect(mayFit(new Set(["number"]), new Set(["integer"]))).toBe(true);
  });
});

describe("tidy up", () => {
  test.each([SEED, EVERYTHING, BODIES])(
    "nothing overlaps, and the same document gives the same positions",
    (text) => {
      const document = openDocument(text);
      const positions = layoutDocument(document);
      expect(layoutDocument(openDocument(text))).toEqual(positions);
      const wrappers = new Set(nodesOf(document).flatMap((one) => one.middlewares ?? []));
      const boxes = nodesOf(document).filter((one) => one.type !== "core.container" && !wrappers.has(one.id));
      for (const one of boxes) {
        const at = positions.get(one.id);
        expect(at, one.id).toBeDefined();
        expect((at?.x ?? 1) % GRID).toBe(0);
        for (const other of boxes) {
          const there = positions.get(other.id);
          if (one === other || !at || !there) continue;
          const apart =
            Math.abs(at.x - there.x) >= USUAL_SIZE.width || Math.abs(at.y - there.y) >= USUAL_SIZE.height;
          expect(apart, `${one.id} ${other.id}`).toBe(true);
        }
      }
    },
  );

  test("positions do not depend on where the nodes are, and edges lead to the right", () => {
    const document = openDocument(SEED);
    const moved = setAt(document, ["nodes", 0, "position"], { x: 9999, y: -5 });
    expect(layoutDocument(moved)).toEqual(layoutDocument(document));
    const [first, second] = nodesOf(document).map((one) => layoutDocument(document).get(one.id));
    expect((second?.x ?? 0) - (first?.x ?? 0)).toBeGreaterThanOrEqual(USUAL_SIZE.width);
  });

  test("the sizes that steps have on the canvas are kept apart, also around containers", () => {
    const document = openDocument(
      JSON.stringify({
        nodes: [
          { id: "a", type: "t.step" },
          { id: "tall", type: "t.step" },
          { id: "next", type: "t.step" },
          { id: "box", type: "core.container" },
          { id: "i", type: "t.step", parent: "box" },
        ],
        edges: ["tall", "next", "box"].map((id) => ({ source: { node: "a" }, target: { node: id } })),
      }),
    );
    const sizes = { tall: { width: 224, height: 400 }, i: { width: 480, height: 300 } };
    const sizeOf = (one: { readonly id: string }) => sizes[one.id as "tall"] ?? USUAL_SIZE;
    const places = layoutDocument(document, sizeOf);
    const column = ["tall", "next", "box"]
      .map((id) => {
        const inner = { x: 480 + 2 * BOX_BORDER.side, y: 300 + BOX_BORDER.top + BOX_BORDER.bottom };
        return { y: places.get(id)?.y ?? 0, height: id === "box" ? inner.y : id === "tall" ? 400 : 88 };
      })
      .toSorted((one, other) => one.y - other.y);
    for (const [place, box] of column.entries()) {
      const below = column[place + 1];
      if (below !== undefined) expect(below.y).toBeGreaterThanOrEqual(box.y + box.height);
    }
  });

  test("a selection is laid out where it is, and all else stays", () => {
    const at = (x: number, y: number) => ({ x, y });
    const document = openDocument(
      JSON.stringify({
        nodes: [
          { id: "a", type: "t.step", position: at(800, 400) },
          { id: "b", type: "t.step", position: at(640, 240) },
          { id: "c", type: "t.step", position: at(0, 0) },
          { id: "box", type: "core.container", position: at(0, 1000) },
          { id: "i", type: "t.step", parent: "box", position: at(24, 1048) },
          { id: "j", type: "t.step", parent: "box", position: at(24, 1048) },
        ],
        edges: [{ source: { node: "a" }, target: { node: "b" } }],
      }),
    );
    const places = layoutChosen(document, new Set(["a", "b"]));
    expect([...places.keys()].sort()).toEqual(["a", "b"]);
    expect(places.get("a")).toEqual(at(640, 240));
    expect(places.get("b")?.x).toBeGreaterThanOrEqual(640 + USUAL_SIZE.width);
    expect(places.get("b")?.y).toBe(240);
    // A container comes with all that is in it; steps of one container are laid out inside of it.
    expect([...layoutChosen(document, new Set(["a", "box", "i"])).keys()].sort()).toEqual([
      "a",
      "box",
      "i",
      "j",
    ]);
    const inner = layoutChosen(document, new Set(["i", "j"]));
    expect(inner.get("i")).toEqual(at(24, 1048));
    expect(inner.get("j")).not.toEqual(inner.get("i"));
    expect(layoutChosen(document, new Set(["a"])).size).toBe(0);
  });

  test("a broken document is laid out as far as it goes", () => {
    const broken = openDocument(
      '{"nodes":[{"id":"a","type":"core.container","parent":"b"},{"id":"b","type":"core.container","parent":"a"},{"id":"c","type":"x","parent":"nobody"}],"edges":[{"source":{"node":"c"},"target":{"node":"c"}}]}',
    );
    expect(layoutDocument(broken).has("c")).toBe(true);
    expect(CATALOG.find("core.echo")).toMatchObject({ type: "core.echo" });
  });
});
