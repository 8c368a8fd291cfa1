import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { NodeDefinition } from "../src/model/definition";
import { newNode, type RunNode, startRun } from "../src/model/run/state";
import { alertsOf } from "../src/runview/alerts";
import { readBlock } from "../src/runview/eventLog";
import { ansiSpans, stripAnsi } from "../src/runview/logs/ansi";
import { filterLines, linesOfEvents } from "../src/runview/logs/lines";
import { planRerun } from "../src/runview/rerunPlan";
import { readRunSearch } from "../src/runview/search";
import { countStates, sortSteps, stepRows } from "../src/runview/stepRows";
import { selectedRow, type TimelineEntry, timelineRows } from "../src/runview/timeline";
import { flattened, spanOf, ticksOf } from "../src/runview/timelineAxis";
import { summaryOf } from "../src/runview/wireData";
import { errorHelp } from "../src/texts/errorHelp";

describe("the address of a run page", () => {
  it("keeps what it knows and drops the rest", () => {
    expect(
      readRunSearch({ tab: "timeline", step: "a", attempt: 2, log: "stderr", level: "error", q: 404 }),
    ).toEqual({
      tab: "timeline",
      step: "a",
      attempt: 2,
      log: "stderr",
      level: "error",
      q: "404",
    });
    expect(readRunSearch({ tab: "x", attempt: 2, scope: "y", level: 3, q: "", evil: 1 })).toEqual({});
    expect(readRunSearch({ step: "a", attempt: -1, logsOf: "all" })).toEqual({ step: "a", logsOf: "all" });
  });
});

const waits = (nodeId: string, kind: string, detail: string, more: Partial<RunNode> = {}): RunNode => ({
  ...newNode(nodeId, null),
  status: "ready",
  waitingFor: { kind, detail },
  ...more,
});
const runWith = (...nodes: RunNode[]) => ({
  ...startRun("r"),
  nodes: new Map(nodes.map((node) => [node.nodeId, node])),
});

describe("alerts", () => {
  it("join steps with the same reason, the urgent first", () => {
    const run = runWith(
      waits("a", "approval", "Pay?"),
      waits("b", "package", "no worker online offers gpu 1"),
      waits("c", "package", "no worker online offers gpu 1"),
      waits("d", "retry", "soon"),
      waits("e", "slot", "busy"),
    );
    const alerts = alertsOf(run);
    expect(alerts.map((one) => [one.kind, one.steps.length, one.isUrgent])).toEqual([
      ["package", 2, true],
      ["approval", 1, false],
    ]);
  });

  it("name the run that holds a key", () => {
    const waitingFor = { kind: "key", detail: "in use", heldBy: { runId: "other", nodeId: "x" } };
    expect(alertsOf(runWith(waits("a", "key", "", { waitingFor })))[0]?.holder).toBe("other");
  });

  it("are none of a run that has ended", () => {
    expect(alertsOf({ ...runWith(waits("a", "worker", "x")), finishedAt: "2026-01-01T00:00:00Z" })).toEqual(
      [],
    );
  });
});

const time = (ms: number): string => new Date(ms).toISOString();
const attempt = (nodeId: string, number: number, from: number, to: number | null, more = {}): TimelineEntry =>
  ({
    kind: "attempt",
    nodeId,
    attempt: number,
    status: to === null ? "running" : "succeeded",
    dispatchedAt: time(from),
    startedAt: time(from),
    ...(to === null ? {} : { finishedAt: time(to) }),
    ...more,
  }) as TimelineEntry;
const options = { labelOf: (id: string) => id.toUpperCase(), toggled: new Set<string>(), hidesWaits: false };

describe("the timeline", () => {
  it("has waits, attempts side by side, and the gap between them", () => {
    const entries = [
      {
        kind: "wait",
        nodeId: "a",
        since: time(0),
        waitingFor: { kind: "worker", detail: "none" },
      } as TimelineEntry,
      attempt("a", 1, 10, 20, { status: "failed", retryAt: time(50), error: { code: "E", message: "bad" } }),
      attempt("a", 2, 50, null),
    ];
    const [row] = timelineRows(entries, options);
    expect(row?.bars.map((bar) => [bar.kind, bar.start, bar.end])).toEqual([
      ["wait", 0, 10],
      ["ran", 10, 20],
      ["gap", 20, 50],
      ["ran", 50, null],
    ]);
    expect(row?.bars[0]?.reason).toBe("none");
    expect(timelineRows(entries, { ...options, hidesWaits: true })[0]?.bars.map((bar) => bar.kind)).toEqual([
      "ran",
      "ran",
    ]);
    expect(spanOf([row as NonNullable<typeof row>], 90)).toEqual({ start: 0, end: 90 });
    expect(flattened(row as NonNullable<typeof row>, 100).bars[0]?.start).toBe(100);
  });

  it("shows the way to a worker before the attempt runs", () => {
    const [row] = timelineRows([attempt("a", 1, 10, 20, { dispatchedAt: time(5) })], options);
    expect(row?.bars.map((bar) => bar.kind)).toEqual(["handing", "ran"]);
    const [waiting] = timelineRows(
      [
        {
          kind: "attempt",
          nodeId: "a",
          attempt: 1,
          status: "dispatched",
          dispatchedAt: time(5),
        } as TimelineEntry,
      ],
      options,
    );
    expect(waiting?.bars).toMatchObject([{ kind: "handing", start: 5, end: null }]);
  });

  it("folds the items of a map into one row", () => {
    const entries = [
      attempt("m", 1, 0, 10, { scopePath: "m:0" }),
      attempt("m", 1, 5, 30, { scopePath: "m:1" }),
      attempt("m", 1, 5, null, { scopePath: "m:2" }),
    ];
    const [row, ...none] = timelineRows(entries, options);
    expect(none).toEqual([]);
    expect(row?.group).toEqual({ kind: "items", size: 3, ended: 2, isOpen: false });
    expect(row?.bars).toMatchObject([{ start: 0, end: null, status: "running" }]);
    const all = timelineRows(
      [...entries, { kind: "end", nodeId: "m", status: "succeeded", finishedAt: time(40) } as TimelineEntry],
      {
        ...options,
        toggled: new Set(["m"]),
      },
    );
    expect(all.map((one) => one.label)).toEqual(["M", "[0] M", "[1] M", "[2] M"]);
    expect(all[0]?.status).toBe("succeeded");
  });

  it("has the calls of a chain below the step, each link inside of the one before", () => {
    const call = (nodeId: string, callId: string, from: number, to: number) =>
      attempt(nodeId, 1, from, to, { hostNodeId: "a", callId });
    const entries = [
      attempt("a", 1, 0, 90, { hostNodeId: "a" }),
      call("log", "1", 5, 80),
      call("a", "2", 10, 20),
      call("a", "3", 30, 70),
      attempt("b", 1, 90, 95),
    ];
    const rows = timelineRows(entries, options);
    expect(rows.map((row) => [row.label, row.depth])).toEqual([
      ["A", 0],
      ["LOG", 1],
      ["A", 2],
      ["B", 0],
    ]);
    expect(rows[0]?.group).toEqual({ kind: "calls", size: 2, ended: 2, isOpen: true });
    expect(rows[2]?.bars.map((bar) => [bar.start, bar.end])).toEqual([
      [10, 20],
      [30, 70],
    ]);
    const closed = timelineRows(entries, { ...options, toggled: new Set(["a"]) });
    expect(closed.map((row) => row.label)).toEqual(["A", "B"]);
    expect(closed[0]?.group?.isOpen).toBe(false);
    // The keyboard goes through both rows of the same step.
    expect(selectedRow(rows, "", "a", undefined)).toBe(0);
    expect(selectedRow(rows, rows[2]?.key ?? "", "a", undefined)).toBe(2);
    expect(selectedRow(rows, rows[2]?.key ?? "", "b", undefined)).toBe(3);
    expect(selectedRow(rows, "", "nothing", undefined)).toBe(-1);
  });

  it("leaves calls whose step is not known yet for later", () => {
    expect(timelineRows([attempt("a", 1, 0, 1, { callId: "c" })], options)).toEqual([]);
  });

  it("has round marks", () => {
    expect(ticksOf({ start: 0, end: 60_000 }, 12_000)).toEqual([0, 15_000, 30_000, 45_000, 60_000]);
    expect(ticksOf({ start: 0, end: 10 }, 3)).toEqual([0, 5, 10]);
    expect(spanOf([], 5)).toEqual({ start: 5, end: 1005 });
  });
});

describe("the plan of a re-run", () => {
  const node = (id: string, more: Partial<NodeDefinition> = {}): NodeDefinition => ({
    id,
    type: "core.echo",
    ...more,
  });
  const nodes = [
    node("a", { label: "First" }),
    node("b"),
    node("c"),
    node("d", { parameters: { value: "=nodes['First'].results.value" } }),
    node("e", { parameters: { value: "=nodes.First.results.value" } }),
    node("w"),
    node("x", { middlewares: ["w"] }),
    node("box", { type: "core.container" }),
    node("in", { parent: "box" }),
  ];
  const edges = [
    { source: { node: "a" }, target: { node: "b" } },
    { source: { node: "b" }, target: { node: "c" } },
  ];
  const given = { nodes, edges, from: [], hasSucceeded: (id: string) => id !== "b" };

  it("takes over what nothing repeated was made into", () => {
    expect(planRerun({ ...given, mode: "failed" }).repeated.toSorted()).toEqual(["b", "c"]);
    const from = planRerun({ ...given, mode: "from", from: ["a"], hasSucceeded: () => true });
    expect(from.repeated.toSorted()).toEqual(["a", "b", "c", "d", "e"]);
    expect(from.kept.toSorted()).toEqual(["box", "x"]);
    expect(planRerun({ ...given, mode: "all" }).kept).toEqual([]);
  });

  it("repeats a container with what is inside, and a node with what is around it", () => {
    expect(
      planRerun({ ...given, mode: "from", from: ["in", "w"], hasSucceeded: () => true }).repeated.toSorted(),
    ).toEqual(["box", "x"]);
  });
});

describe("data on wires", () => {
  it("is counted, measured and shown in part", () => {
    expect(summaryOf({ rows: [{ a: 1 }, { a: 2 }] }, ["rows"])).toEqual({
      count: 2,
      bytes: 17,
      first: '{"a":1}',
      owner: null,
    });
    expect(summaryOf({ text: "hi" }, ["text"])).toMatchObject({ count: null, bytes: 2, first: "hi" });
    expect(summaryOf({}, ["text"])).toBeNull();
    const file = { resourceRef: { resourceId: "r/f.txt", workerId: "w", type: "file", sizeBytes: 9 } };
    expect(summaryOf({ file }, ["file"])).toEqual({ count: null, bytes: 9, first: "f.txt", owner: "w" });
    expect(summaryOf({ long: "x".repeat(500) }, ["long"])?.first).toHaveLength(121);
    expect(summaryOf({ many: Array.from({ length: 5_000 }, () => 0) }, ["many"])).toMatchObject({
      count: 5_000,
      bytes: null,
    });
  });
});

describe("steps", () => {
  const steps = ["a", "b", "c"].map((nodeId) => ({ nodeId, label: nodeId, type: "t", package: "core 1" }));
  const nodes = new Map<string, RunNode>([
    ["a", { ...newNode("a", null), status: "succeeded", startedAt: time(0), finishedAt: time(50) }],
    ["b", { ...newNode("b", null), status: "running", startedAt: time(0), attempt: 2 }],
  ]);

  it("are sorted by what needs a look", () => {
    const rows = stepRows(steps, nodes, 90);
    const keys = (column: "state" | "duration" | "attempt" | "label", isDown = false) =>
      sortSteps(rows, { column, isDown }).map((row) => row.nodeId);
    expect(keys("state")).toEqual(["b", "c", "a"]);
    expect(keys("duration", true)).toEqual(["b", "a", "c"]);
    expect(keys("attempt", true)).toEqual(["b", "a", "c"]);
    expect(keys("label", true)).toEqual(["c", "b", "a"]);
    expect(sortSteps(rows, null)).toBe(rows);
    expect(countStates(rows.map((row) => row.state))).toEqual([
      ["running", 1],
      ["notRun", 1],
      ["succeeded", 1],
    ]);
  });
});

describe("logs", () => {
  const event = (id: number, text: string, more = {}) => ({
    id,
    type: "node.result.delta",
    occurredAt: time(id),
    data: { nodeId: "a", attempt: 1, channel: "stdout", index: id, mimeType: "text/plain", text, ...more },
  });
  const all = { kind: "all", level: "debug", nodeId: null, scopePath: null, text: "" } as const;

  it("are lines of output, not of streams", () => {
    const lines = linesOfEvents([
      event(1, "one\ntwo\n", { pieces: 2 }),
      event(2, "token", { channel: "llm" }),
      event(3, "warned", { channel: "log", metadata: { level: "WARN", table: "users" } }),
      { id: 4, type: "node.state", data: {} },
    ]);
    expect(lines.map((line) => [line.key, line.text, line.level])).toEqual([
      ["1.0", "one", "info"],
      ["1.1", "two", "info"],
      ["3.0", "warned", "warning"],
    ]);
    expect(lines[2]?.fields).toEqual({ table: "users" });
  });

  it("are filtered by channel, level, step and text", () => {
    const lines = linesOfEvents([
      event(1, "\u001b[31mRed\u001b[0m"),
      event(2, "bad", { channel: "log", metadata: { level: "error" } }),
      event(3, "item", { nodeId: "b", scopePath: "m:3" }),
    ]);
    const ids = (more: object) => filterLines(lines, { ...all, ...more }).map((line) => line.id);
    expect(ids({})).toEqual([1, 2, 3]);
    expect(ids({ kind: "log" })).toEqual([2]);
    expect(ids({ level: "warning" })).toEqual([2]);
    expect(ids({ nodeId: "m" })).toEqual([3]);
    expect(ids({ nodeId: "m", scopePath: "m:4" })).toEqual([]);
    expect(ids({ text: "RED" })).toEqual([1]);
  });

  it("have the colours of a terminal", () => {
    expect(stripAnsi("\u001b[1;31mx\u001b[0m\u0007")).toBe("x");
    expect(ansiSpans("a\u001b[1;32mb\u001b[22;39mc\u001b[2Kd\u001b[91me")).toEqual([
      { text: "a", color: null, isBold: false },
      { text: "b", color: 2, isBold: true },
      { text: "c", color: null, isBold: false },
      { text: "d", color: null, isBold: false },
      { text: "e", color: 9, isBold: false },
    ]);
  });
});

describe("stored events", () => {
  it("are read block by block", () => {
    expect(readBlock(": ping")).toBeNull();
    expect(readBlock('id: 1\nevent: run.status\ndata: {"id":1,"type":"run.status","data":{}}')).toMatchObject(
      { id: 1 },
    );
  });
});

describe("what to do about an error", () => {
  it("is what the reference says", () => {
    const page = readFileSync(new URL("../../docs/reference/errors.md", import.meta.url), "utf8");
    const lower = (text: string): string => (text[0] ?? "").toLowerCase() + text.slice(1, -1);
    for (const [code, { says, help }] of Object.entries(errorHelp)) {
      const row = page.split("\n").find((line) => line.startsWith(`| \`${code}\` |`)) ?? "";
      expect(row.toLowerCase()).toContain(lower(says).toLowerCase());
      expect(row.toLowerCase()).toContain(lower(help).toLowerCase());
    }
  });
});
