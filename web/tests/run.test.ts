import { describe, expect, test } from "vitest";
import { EventBuffer, MAX_WAITING } from "../src/model/run/buffer";
import type { RunEvent } from "../src/model/run/events";
import { reduceRun } from "../src/model/run/reducer";
import {
  edgeKey,
  MAX_SCOPED_NODES,
  MAX_STREAM_CHARS,
  MAX_STREAMS,
  type RunState,
  startRun,
  stepState,
} from "../src/model/run/state";
import { Random } from "./random";

const event = (id: number, type: string, data: object): RunEvent => ({
  id,
  type,
  occurredAt: `t${id}`,
  data,
});
const state = (id: number, nodeId: string, status: string, more: object = {}): RunEvent =>
  event(id, "node.state", { nodeId, status, ...more });
const delta = (id: number, text: string, index: number, more: object = {}): RunEvent =>
  event(id, "node.result.delta", {
    nodeId: "a",
    attempt: 1,
    channel: "text",
    index,
    mimeType: "text/plain",
    text,
    ...more,
  });
const START = startRun("r");

/** What a run with a retry looks like from outside. */
const EVENTS: readonly RunEvent[] = [
  event(1, "run.status", { status: "queued" }),
  event(2, "run.status", { status: "running" }),
  state(3, "a", "ready", { attempt: 0, waitingFor: { kind: "worker", detail: "no worker" } }),
  state(4, "a", "dispatched", { attempt: 1, workerId: "w1" }),
  state(5, "a", "running", { attempt: 1 }),
  delta(6, "Hel", 0),
  delta(7, "lo", 1),
  event(8, "node.error", { nodeId: "a", attempt: 1, error: { code: "E.X" } }),
  state(9, "a", "retrying", {
    attempt: 1,
    error: { code: "E.X" },
    waitingFor: { kind: "retry", detail: "", retryAt: "t" },
  }),
  state(10, "a", "running", { attempt: 2, workerId: "w2" }),
  delta(11, "Bye", 0, { attempt: 2 }),
  event(12, "run.metrics", { nodeId: "a", attempt: 2, metrics: { loss: 0.5 } }),
  event(13, "artifact.ready", { nodeId: "a", artifact: {} }),
  event(14, "node.result.snapshot", { nodeId: "a", attempt: 2, result: {}, artifacts: [] }),
  state(15, "a", "succeeded", { attempt: 2 }),
  event(16, "edge.state", { nodeId: "b", sourceNodeId: "a", taken: false }),
  state(17, "b", "skipped"),
  event(18, "something.new", {}),
  event(19, "run.status", { status: "succeeded" }),
];

describe("the state of a run", () => {
  const all = reduceRun(START, EVENTS);

  test("a run from its first to its last event", () => {
    expect(all).toMatchObject({ status: "succeeded", startedAt: "t2", finishedAt: "t19", lastEvent: 19 });
    expect(all.nodes.get("a")).toMatchObject({
      status: "succeeded",
      attempt: 2,
      failures: 1,
      workerId: "w2",
      error: null,
      startedAt: "t5",
      finishedAt: "t15",
      metrics: { loss: 0.5 },
      artifacts: 1,
      hasResult: true,
      waitingFor: null,
    });
    expect(all.nodes.get("a")?.streams.text?.text).toBe("Bye");
    expect(all.edges.get(edgeKey("a", "b"))).toBe(false);
  });

  test("the same in any batches, with any events repeated", () => {
    for (let seed = 0; seed < 100; seed += 1) {
      const random = new Random(seed);
      let here: RunState = START;
      let done = 0;
      while (done < EVENTS.length) {
        const from = Math.max(0, done - random.below(4));
        const to = Math.min(EVENTS.length, done + 1 + random.below(5));
        here = reduceRun(here, EVENTS.slice(from, to));
        done = to;
      }
      expect(here, `seed ${seed}`).toEqual(all);
    }
  });

  test("what was seen gives the same object", () => {
    expect(reduceRun(all, EVENTS)).toBe(all);
    expect(reduceRun(all, [])).toBe(all);
  });

  test("only a node that changed is another object", () => {
    const more = reduceRun(reduceRun(START, [state(1, "a", "running"), state(2, "b", "running")]), [
      state(3, "b", "succeeded"),
    ]);
    const before = reduceRun(START, [state(1, "a", "running"), state(2, "b", "running")]);
    const after = reduceRun(before, [state(3, "b", "succeeded")]);
    expect(after.nodes.get("a")).toBe(before.nodes.get("a"));
    expect(after).toEqual(more);
    expect(before.nodes.get("b")?.status).toBe("running");
  });

  test("a call within a chain is not its host", () => {
    const run = reduceRun(START, [
      state(1, "a", "running", { attempt: 1 }),
      state(2, "a", "failed", { callId: "c" }),
    ]);
    expect(run.nodes.get("a")?.status).toBe("running");
  });

  test("items of a map are nodes of their own", () => {
    const run = reduceRun(START, [
      state(1, "m", "running", { items: 2 }),
      state(2, "x", "running", { scopePath: "m:0" }),
      state(3, "x", "failed", { scopePath: "m:1" }),
    ]);
    expect([...run.nodes.keys()]).toEqual(["m", "m:0/x", "m:1/x"]);
    expect([run.nodes.get("m")?.items, run.scopedCount]).toEqual([2, 2]);
  });
});

describe("a batch with joined outputs", () => {
  test("has numbers that are not in order, and all of it counts", () => {
    const both = [delta(9, "ab", 0, { pieces: 2 }), delta(8, "xy", 0, { nodeId: "b", pieces: 2 })];
    const after = reduceRun(START, both);
    expect(after.nodes.get("a")?.streams.text?.text).toBe("ab");
    expect(after.nodes.get("b")?.streams.text?.text).toBe("xy");
    expect(after.lastEvent).toBe(9);
    expect(reduceRun(after, both)).toBe(after);
  });
});

describe("snapshots", () => {
  const snapshot = (lastEvent: number, more: object = {}): RunEvent => ({
    type: "run.snapshot",
    data: {
      runId: "r",
      status: "running",
      lastEvent,
      nodes: [{ nodeId: "a", status: "running", attempt: 1 }],
      ...more,
    },
  });

  test("a late viewer sees which results were taken over", () => {
    const nodes = [
      { nodeId: "a", status: "succeeded", attempt: 0 },
      { nodeId: "b", status: "succeeded", attempt: 0, startedAt: "t1" },
      { nodeId: "c", status: "succeeded", attempt: 1, startedAt: "t1" },
      { nodeId: "d", status: "succeeded", attempt: 0, parent: "b" },
    ];
    const run = reduceRun(START, [snapshot(7, { nodes })]);
    expect(["a", "b", "c", "d"].map((id) => stepState(run.nodes.get(id)))).toEqual([
      "cached",
      "succeeded",
      "succeeded",
      "succeeded",
    ]);
  });

  test("a late viewer sees the stream so far, and what follows it once", () => {
    const output = [
      {
        nodeId: "a",
        attempt: 1,
        channel: "text",
        index: 0,
        pieces: 2,
        mimeType: "text/plain",
        text: "Hello",
      },
    ];
    const run = reduceRun(START, [snapshot(7, { output }), delta(7, "lo", 1), delta(8, "!", 2)]);
    expect(run.nodes.get("a")?.streams.text).toMatchObject({ text: "Hello!", next: 3 });
  });

  test("a viewer who got the last event before the snapshot sees all of the stream", () => {
    const output = [
      {
        nodeId: "a",
        attempt: 1,
        channel: "text",
        index: 0,
        pieces: 2,
        mimeType: "text/plain",
        text: "Hello",
      },
    ];
    const early = reduceRun(START, [delta(7, "lo", 1)]);
    const run = reduceRun(early, [
      { ...snapshot(7, { output }), id: 7 },
      delta(7, "lo", 1),
      delta(8, "!", 2),
    ]);
    expect(run.nodes.get("a")?.streams.text).toMatchObject({ text: "Hello!", next: 3 });
  });

  test("an older one changes nothing; a new one takes the place of what was missed", () => {
    const ahead = reduceRun(START, [state(9, "a", "succeeded", { attempt: 1 })]);
    expect(reduceRun(ahead, [snapshot(5)])).toBe(ahead);
    const reset = reduceRun(ahead, [
      { type: "stream.reset", data: { from: 10, to: 20, reason: "retention" } },
    ]);
    expect(reset.needsSnapshot).toBe(true);
    const fresh = reduceRun(reset, [snapshot(30, { nodes: [] })]);
    expect([fresh.needsSnapshot, fresh.lastEvent, fresh.nodes.size]).toEqual([false, 30, 0]);
  });

  test("of a run that has ended the last event comes again", () => {
    const run = reduceRun(START, [
      snapshot(12, { status: "failed", finishedAt: "t12" }),
      event(12, "run.status", { status: "failed", error: { code: "E.Y" } }),
    ]);
    expect(run).toMatchObject({ status: "failed", lastEvent: 12, finishedAt: "t12", error: { code: "E.Y" } });
  });
});

describe("bounds", () => {
  test("of a stream the end is kept, and what is forgotten is counted", () => {
    let run = reduceRun(START, [state(1, "a", "running", { attempt: 1 })]);
    const piece = "x".repeat(1_000);
    for (let number = 0; number < 400; number += 1) run = reduceRun(run, [delta(number + 2, piece, number)]);
    const stream = run.nodes.get("a")?.streams.text;
    expect(stream?.text.length).toBe(MAX_STREAM_CHARS);
    expect((stream?.forgotten ?? 0) + MAX_STREAM_CHARS).toBe(400_000);
  });

  test("channels, and items of maps, have an end; those that run are kept longest", () => {
    const channels = Array.from({ length: 50 }, (_, at) => delta(at + 1, "x", 0, { channel: `c${at}` }));
    expect(Object.keys(reduceRun(START, channels).nodes.get("a")?.streams ?? {})).toHaveLength(MAX_STREAMS);
    const items = Array.from({ length: MAX_SCOPED_NODES + 500 }, (_, at) =>
      state(at + 1, "x", at === 0 ? "running" : "succeeded", { scopePath: `m:${at}` }),
    );
    const run = reduceRun(START, items);
    expect([run.nodes.size, run.scopedCount]).toEqual([MAX_SCOPED_NODES, MAX_SCOPED_NODES]);
    expect(run.nodes.has("m:0/x")).toBe(true);
  });

  test("events that wait come out in their order, and are counted", () => {
    const buffer = new EventBuffer();
    expect(buffer.take()).toEqual({ events: [], needsSnapshot: false });
    buffer.push([event(1, "run.status", {}), event(2, "run.status", {})]);
    buffer.push([event(3, "run.status", {})]);
    expect(buffer.count).toBe(3);
    expect(buffer.take()).toMatchObject({ events: [{ id: 1 }, { id: 2 }, { id: 3 }], needsSnapshot: false });
    expect(buffer.count).toBe(0);
  });

  test("too many events that wait become one snapshot", () => {
    const buffer = new EventBuffer();
    const many = Array.from({ length: MAX_WAITING + 5 }, (_, at) => event(at + 1, "run.status", {}));
    buffer.push(many);
    expect(buffer.count).toBe(MAX_WAITING + 5);
    expect(buffer.take()).toEqual({ events: [], needsSnapshot: true });
    // What comes after that is kept again.
    buffer.push([event(9, "run.status", {})]);
    expect(buffer.take()).toMatchObject({ events: [{ id: 9 }], needsSnapshot: false });
    // A snapshot says all that was before it, also what was not kept.
    buffer.push([...many, { type: "run.snapshot", data: {} }]);
    expect(buffer.take()).toMatchObject({ events: [{ type: "run.snapshot" }], needsSnapshot: false });
  });
});

describe("how a step is shown", () => {
  const shown = (status: string, more: object = {}): string =>
    stepState(reduceRun(START, [state(1, "a", status, more)]).nodes.get("a"));

  test.each([
    ["pending", {}, "notRun"],
    ["ready", { waitingFor: { kind: "worker", detail: "" } }, "queued"],
    ["ready", { waitingFor: { kind: "approval", detail: "" } }, "waiting"],
    ["dispatched", {}, "queued"],
    ["waiting", {}, "waiting"],
    ["retrying", {}, "retrying"],
    ["running", {}, "running"],
    ["succeeded", {}, "succeeded"],
    ["succeeded", { reusedFrom: "r0" }, "cached"],
    ["succeeded", { pinned: true }, "cached"],
    ["failed", {}, "failed"],
    ["cancelled", {}, "cancelled"],
    ["skipped", {}, "skipped"],
  ])("%s %j", (status, more, wanted) => {
    expect(shown(status, more)).toBe(wanted);
    expect(stepState(undefined)).toBe("notRun");
  });
});
