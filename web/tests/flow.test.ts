import { describe, expect, it } from "vitest";
import { edgeId, FlowMapper, type StepFlowNode } from "../src/canvas/flow";
import { NodeCatalog, type NodeType } from "../src/model/catalog";
import { openDocument } from "../src/model/document";
import { moveNodes } from "../src/model/edits/nodes";
import catalog from "./fixtures/catalog.json";

const CATALOG = new NodeCatalog(catalog as unknown as readonly NodeType[]);

const TEXT = JSON.stringify({
  nodes: [
    { id: "in", type: "core.echo", parent: "box", position: { x: 100, y: 100 } },
    { id: "box", type: "core.container", position: { x: 0, y: 0 }, parameters: {} },
    { id: "outer", type: "core.echo", position: { x: 600, y: 0 }, middlewares: ["mid"] },
    { id: "mid", type: "core.retry" },
    { id: "strange", type: "no.such" },
  ],
  edges: [{ source: { node: "box" }, target: { node: "outer", port: "value" } }],
  "x-editor": {
    notes: [{ id: "note", text: "hi", position: { x: 1, y: 2 }, width: 100, height: 50 }],
  },
});

describe("a document as it is drawn", () => {
  const mapper = new FlowMapper();
  const document = openDocument(TEXT);
  const flow = mapper.map(document, CATALOG);
  const byId = new Map(flow.nodes.map((node) => [node.id, node]));

  it("has containers before what is in them, around it, with places that count from their corner", () => {
    expect(flow.nodes.map((node) => node.id)).toEqual(["box", "outer", "strange", "in", "note"]);
    const box = byId.get("box");
    expect(box?.type).toBe("container");
    expect(box?.position).toEqual({ x: 76, y: 52 });
    expect(byId.get("in")?.parentId).toBe("box");
    expect(byId.get("in")?.position).toEqual({ x: 24, y: 48 });
  });

  it("draws middlewares on their host, and types that nobody knows with the ports that all have", () => {
    expect(byId.has("mid")).toBe(false);
    expect((byId.get("outer") as StepFlowNode).data.chain.map((one) => one.id)).toEqual(["mid"]);
    const strange = (byId.get("strange") as StepFlowNode).data;
    expect(strange.type).toBeUndefined();
    expect([...strange.ports.outputs.keys()]).toEqual(["done", "error"]);
  });

  it("names edges by what they connect", () => {
    expect(flow.edges.map((edge) => edge.id)).toEqual(["box:done>outer:value"]);
    expect(flow.edges[0]?.data?.kind).toBe("data");
    expect(edgeId({ id: "mine", source: { node: "a" }, target: { node: "b" } })).toBe("mine");
  });

  it("keeps what did not change as it is", () => {
    expect(mapper.map(document, CATALOG)).toBe(flow);
    const moved = moveNodes(document, new Map([["outer", { x: 700, y: 8 }]]));
    const after = mapper.map(moved, CATALOG);
    const changed = after.nodes.filter((node) => node !== byId.get(node.id));
    expect(changed.map((node) => node.id)).toEqual(["outer"]);
    expect(after.edges[0]).toBe(flow.edges[0]);
  });

  it("survives containers that are inside of each other in a circle", () => {
    const circle = openDocument(
      JSON.stringify({
        nodes: [
          { id: "a", type: "core.container", parent: "b" },
          { id: "b", type: "core.container", parent: "a" },
        ],
      }),
    );
    const { nodes } = new FlowMapper().map(circle, CATALOG);
    expect(nodes.map((node) => node.parentId)).toEqual([undefined, undefined]);
  });
});
