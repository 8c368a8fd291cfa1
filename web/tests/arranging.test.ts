import { describe, expect, it } from "vitest";
import { FlowMapper, type FlowNode } from "../src/canvas/flow";
import { carried, draggedSteps, withFrames } from "../src/canvas/frames";
import { moveOf } from "../src/canvas/gestures";
import { align, boxesOf, distribute, moveBy, nudge } from "../src/editor/arranging";
import { groupChosen, ungroupChosen } from "../src/editor/grouping";
import { type CanvasHandle, createSession, documentOf, type EditorSession } from "../src/editor/session";
import { aligned, distributed } from "../src/model/aligning";
import { groupsOf, nodesOf, openDocument, textOf } from "../src/model/document";
import { groupNodes, leaveGroups } from "../src/model/edits/canvas";
import { removeNodes } from "../src/model/edits/nodes";
import { CATALOG } from "./examples";

const at = (x: number, y: number) => ({ x, y });
const TEXT = JSON.stringify({
  nodes: [
    { id: "a", type: "core.sleep", position: at(0, 0) },
    { id: "b", type: "core.sleep", position: at(300, 40) },
    { id: "c", type: "core.sleep", position: at(900, 100) },
    { id: "box", type: "core.container", position: at(0, 300) },
    { id: "in", type: "core.sleep", parent: "box", position: at(40, 400) },
  ],
  edges: [],
});
const document = openDocument(TEXT);

const box = (id: string, x: number, y: number, width = 100, height = 50) => ({ id, x, y, width, height });

describe("align and distribute", () => {
  const three = [box("a", 0, 0), box("b", 300, 40, 200), box("c", 150, 100, 100, 70)];
  const all = (places: ReadonlyMap<string, object>) => Object.fromEntries(places);

  it("puts all on the line of the outermost, or on the middle of all", () => {
    expect(all(aligned(three, "left"))).toEqual({ a: at(0, 0), b: at(0, 40), c: at(0, 100) });
    expect(all(aligned(three, "right"))).toEqual({ a: at(400, 0), b: at(300, 40), c: at(400, 100) });
    expect(all(aligned(three, "centre"))).toEqual({ a: at(200, 0), b: at(150, 40), c: at(200, 100) });
    expect(all(aligned(three, "top"))).toEqual({ a: at(0, 0), b: at(300, 0), c: at(150, 0) });
    expect(all(aligned(three, "bottom"))).toEqual({ a: at(0, 120), b: at(300, 120), c: at(150, 100) });
    expect(all(aligned(three, "middle"))).toEqual({ a: at(0, 60), b: at(300, 60), c: at(150, 50) });
  });

  it("gives the same gap between each two, and leaves the outermost", () => {
    expect(all(distributed(three, "across"))).toEqual({ a: at(0, 0), c: at(150, 100), b: at(300, 40) });
    expect(all(distributed([box("a", 0, 0), box("b", 110, 0), box("c", 400, 0)], "across"))).toEqual({
      a: at(0, 0),
      b: at(200, 0),
      c: at(400, 0),
    });
    expect(all(distributed(three, "down"))).toEqual({ a: at(0, 0), b: at(300, 50), c: at(150, 100) });
    expect(distributed(three.slice(1), "down").size).toBe(0);
  });

  it("moves what is inside of a container with it, once", () => {
    const moved = moveBy(
      document,
      new Map([
        ["box", at(8, 0)],
        ["in", at(8, 0)],
      ]),
    );
    const places = Object.fromEntries(nodesOf(moved).map((node) => [node.id, node.position]));
    expect(places).toMatchObject({ a: at(0, 0), box: at(8, 300), in: at(48, 400) });
  });
});

function sessionWith(ids: readonly string[], isReadOnly = false): EditorSession {
  const session = createSession({
    workflowId: "w",
    openedVersion: null,
    document,
    isReadOnly,
    catalog: () => CATALOG,
    keeper: () => null,
    mayEdit: true,
    mayRun: true,
  });
  session.editor.actions.select(ids);
  const drawn = () =>
    nodesOf(documentOf(session)).map(({ id, position }) => ({
      ...box(id, position?.x ?? 0, position?.y ?? 0),
      kind: "step" as const,
    }));
  session.canvas.current = { drawn } as unknown as CanvasHandle;
  return session;
}

const xs = (session: EditorSession) => nodesOf(documentOf(session)).map((node) => node.position?.x);

describe("commands for several steps", () => {
  it("align and distribute in one entry each, and undo brings all back", () => {
    const session = sessionWith(["a", "b", "c"]);
    distribute(session, "across");
    expect(xs(session).slice(0, 3)).toEqual([0, 450, 900]);
    align(session, "left");
    expect(xs(session).slice(0, 3)).toEqual([0, 0, 0]);
    expect(session.editor.getState().history.past).toHaveLength(2);
    session.editor.actions.undo();
    session.editor.actions.undo();
    expect(textOf(documentOf(session))).toBe(TEXT);
  });

  it("take a container as a whole, and leave a read-only document as it is", () => {
    expect(boxesOf(sessionWith(["box", "in"])).map((one) => one.id)).toEqual(["box"]);
    const fixed = sessionWith(["a", "b"], true);
    align(fixed, "left");
    groupChosen(fixed);
    expect(documentOf(fixed)).toBe(document);
  });
});

describe("groups", () => {
  it("are made of the selection, named, moved and dissolved, in one entry each", () => {
    const session = sessionWith(["a", "b"]);
    groupChosen(session);
    const [group] = groupsOf(documentOf(session));
    expect(group).toMatchObject({ label: "Group 1", nodes: ["a", "b"], color: "blue" });
    expect([...session.editor.getState().selection]).toEqual([group?.id]);
    expect(session.decor.getState().naming).toBe(group?.id);
    nudge(session, "right");
    expect(xs(session)).toEqual([8, 308, 900, 0, 40]);
    ungroupChosen(session);
    expect(groupsOf(documentOf(session))).toEqual([]);
    expect([...session.editor.getState().selection]).toEqual(["a", "b"]);
    expect(session.editor.getState().history.past).toHaveLength(3);
  });

  it("have each step once, and go with their last step", () => {
    const first = groupNodes(document, { id: "g", label: "G", nodes: ["a", "b"] });
    const second = groupNodes(first, { id: "h", label: "H", nodes: ["b", "c"] });
    expect(groupsOf(second).map((group) => group.nodes)).toEqual([["a"], ["b", "c"]]);
    expect(groupsOf(removeNodes(second, ["a"])).map((group) => group.id)).toEqual(["h"]);
    expect(textOf(leaveGroups(second, new Set(["a", "b", "c"])))).toBe(TEXT);
  });

  const grouped = groupNodes(document, { id: "g", label: "G", nodes: ["a", "b", "box", "in"] });
  const nodes = new FlowMapper().map(grouped, CATALOG).nodes.map((node): FlowNode => {
    if (node.type !== "step") return node;
    return { ...node, measured: { width: 200, height: 60 } };
  });
  const frame = () => withFrames(nodes).find((node) => node.id === "g");

  it("are drawn around their steps as these are drawn", () => {
    expect(frame()).toMatchObject({
      type: "frame",
      ariaLabel: "Group G, 3 steps",
      position: at(-24, -48),
      width: 548,
      height: 584,
    });
    expect(withFrames([])).toEqual([]);
    const nobody = groupNodes(document, { id: "g", label: "G", nodes: ["gone"] });
    expect(new FlowMapper().map(nobody, CATALOG).nodes.some((node) => node.id === "g")).toBe(false);
  });

  it("move their steps with them, those inside of containers with the container", () => {
    const change = { id: "g", type: "position", position: at(-16, -48), dragging: true } as const;
    expect(carried([change], nodes).map((one) => ("id" in one ? one.id : ""))).toEqual(["a", "b", "box"]);
    const own = { id: "a", type: "position", position: at(8, 0), dragging: true } as const;
    expect(carried([own, change], nodes).filter((one) => "id" in one && one.id === "a")).toEqual([own]);
    expect(carried([own], nodes)).toEqual([own]);
    const dragged = { ...(frame() as FlowNode), position: at(76, -48) } as FlowNode;
    const { positions, ids } = moveOf(nodes, draggedSteps(nodes, [dragged]));
    expect(ids).toEqual(["a", "b", "box"]);
    expect(positions.get("a")).toEqual(at(100, 0));
    expect(positions.get("in")).toEqual(at(140, 400));
    expect(positions.has("c")).toBe(false);
  });
});
