import { beforeEach, describe, expect, it, vi } from "vitest";
import type { RunEvent } from "../src/model/run/events";
import type { LogFilter } from "../src/runview/logs/lines";

interface Query {
  readonly before?: number;
  readonly cursor?: string;
}

const asked: Query[] = [];
/** Lines that are stored: their events are numbered from 1. */
let count = 0;
let pageSize = 1_000;
let isAway = false;
let refusal: Error | null = null;
/** What happens while a page is read. */
let meanwhile: () => void = () => undefined;

// The client asks where the page is from.
vi.hoisted(() => vi.stubGlobal("location", { origin: "http://localhost" }));

/** The newest lines first, as the API has them: up to an event, or from a cursor on. */
vi.mock("../src/api/client", async (original) => ({
  ...(await original<typeof import("../src/api/client")>()),
  api: {
    GET: async (_: string, { params }: { params: { query: Query } }) => {
      asked.push(params.query);
      if (isAway) throw new Error("away");
      if (refusal !== null) throw refusal;
      const { before, cursor } = params.query;
      const last = Math.min(count, (before ?? Number(cursor)) - 1);
      meanwhile();
      await Promise.resolve();
      const first = Math.max(1, last - pageSize + 1);
      const ids = Array.from({ length: Math.max(0, last - first + 1) }, (_, place) => last - place);
      return { items: ids.map(stored), nextCursor: first > 1 ? String(first) : null };
    },
  },
  dataOf: (page: unknown) => page,
}));

const { ApiError } = await import("../src/api/client");
const { createLogs, MAX_LINES } = await import("../src/runview/logs/store");
type LogStore = ReturnType<typeof createLogs>;

const ALL: LogFilter = { kind: "all", level: "debug", nodeId: null, scopePath: null, text: "" };
const at = "2026-01-15T10:00:00.000Z";
const stored = (id: number) => ({
  id,
  occurredAt: at,
  nodeId: "n",
  attempt: 1,
  channel: "stdout",
  index: id,
  text: `line ${id}`,
});
const told = (id: number): RunEvent => ({
  id,
  type: "node.result.delta",
  occurredAt: at,
  data: { nodeId: "n", attempt: 1, channel: "stdout", index: id, text: `line ${id}` },
});
/** Several pieces in one, as the live stream joins them. */
const joined = (from: number, to: number): RunEvent => {
  const ids = Array.from({ length: to - from + 1 }, (_, place) => from + place);
  const text = ids.map((id) => `line ${id}\n`).join("");
  const data = { nodeId: "n", attempt: 1, channel: "stdout", index: from, pieces: ids.length, text };
  return { id: to, type: "node.result.delta", occurredAt: at, data };
};
const snapshot = (lastEvent: number): RunEvent => ({
  id: lastEvent,
  type: "run.snapshot",
  data: { lastEvent },
});
const textsOf = (logs: LogStore): readonly string[] => logs.getState().lines.map((line) => line.text);
const linesFrom = (from: number, to: number): readonly string[] =>
  Array.from({ length: to - from + 1 }, (_, place) => `line ${from + place}`);

describe("the lines of a run", () => {
  beforeEach(() => {
    asked.splice(0);
    count = 0;
    pageSize = 1_000;
    isAway = false;
    refusal = null;
    meanwhile = () => undefined;
    vi.useRealTimers();
  });
  const settled = (logs: LogStore) => vi.waitFor(() => expect(logs.getState().isLoading).toBe(false));

  it("are read up to what the page knows, and told from there on", async () => {
    const logs = createLogs("run");
    count = 9;
    meanwhile = () => logs.getState().take([joined(6, 9)]);
    await logs.getState().load(ALL, 5);
    expect(textsOf(logs)).toEqual(linesFrom(1, 9));
    expect(asked).toEqual([expect.objectContaining({ before: 6 })]);
  });

  it("wait for the snapshot if the page knows nothing yet", async () => {
    const logs = createLogs("run");
    count = 8;
    await logs.getState().load(ALL, 0);
    // Another tab follows the run already: events come before the snapshot that has them.
    logs.getState().take([told(5), told(6)]);
    expect(asked).toHaveLength(0);
    expect(logs.getState().isLoading).toBe(true);
    logs.getState().take([snapshot(6), told(7)]);
    logs.getState().take([told(8)]);
    await settled(logs);
    expect(textsOf(logs)).toEqual(linesFrom(1, 8));
  });

  it("are read between the last event and a snapshot, while others come", async () => {
    const logs = createLogs("run");
    count = 3;
    await logs.getState().load(ALL, 3);
    count = 3_000;
    meanwhile = () => {
      meanwhile = () => undefined;
      count = 60_000;
      logs.getState().take([joined(2_503, 4_000)]);
    };
    logs.getState().take([snapshot(2_500), joined(2_501, 2_502)]);
    await vi.waitFor(() => expect(textsOf(logs)).toEqual(linesFrom(1, 4_000)));
    expect(logs.getState().older).toBeNull();
  });

  it("have no gap: old ones go if too much is missing, and can be read again", async () => {
    const logs = createLogs("run");
    pageSize = 100;
    count = 3;
    await logs.getState().load(ALL, 3);
    count = 2_003;
    logs.getState().take([snapshot(2_003)]);
    logs.getState().take([joined(2_004, 2_006)]);
    await vi.waitFor(() => expect(textsOf(logs)).toEqual(linesFrom(1_504, 2_006)));
    await logs.getState().loadOlder();
    expect(textsOf(logs)).toEqual(linesFrom(1_404, 2_006));
  });

  it("are whole after two snapshots in a row", async () => {
    const logs = createLogs("run");
    count = 5;
    await logs.getState().load(ALL, 5);
    count = 30;
    logs.getState().take([snapshot(10), joined(11, 14)]);
    logs.getState().take([snapshot(20)]);
    logs.getState().take([joined(21, 30)]);
    await vi.waitFor(() => expect(textsOf(logs)).toEqual(linesFrom(1, 30)));
  });

  it("need no second reading for a snapshot that says nothing new", async () => {
    const logs = createLogs("run");
    count = 5;
    await logs.getState().load(ALL, 5);
    logs.getState().take([snapshot(5)]);
    logs.getState().take([told(6)]);
    logs.getState().take([snapshot(6)]);
    await Promise.resolve();
    expect(asked).toHaveLength(1);
    expect(textsOf(logs)).toEqual(linesFrom(1, 6));
  });

  it("are read until they are known if the API is away", async () => {
    vi.useFakeTimers();
    const logs = createLogs("run");
    count = 5;
    await logs.getState().load(ALL, 2);
    isAway = true;
    logs.getState().take([snapshot(5)]);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(textsOf(logs)).toEqual(linesFrom(1, 2));
    expect(logs.getState().error).toBeNull();
    isAway = false;
    await vi.advanceTimersByTimeAsync(3_000);
    expect(textsOf(logs)).toEqual(linesFrom(1, 5));
  });

  it("are not asked for again if they are refused, or if nobody looks any more", async () => {
    vi.useFakeTimers();
    const logs = createLogs("run");
    count = 5;
    await logs.getState().load(ALL, 2);
    refusal = new ApiError("there is no such run", 404, "E.RUN.NOT_FOUND", null);
    logs.getState().take([snapshot(4)]);
    await vi.advanceTimersByTimeAsync(30_000);
    expect(asked).toHaveLength(2);
    expect(logs.getState().error).toBe(refusal);
    refusal = new ApiError("the store cannot be reached", 503, "E.STORE.UNAVAILABLE", null);
    logs.getState().take([snapshot(5)]);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(asked).toHaveLength(4);
    logs.getState().stop();
    await vi.advanceTimersByTimeAsync(30_000);
    expect(asked).toHaveLength(4);
  });

  it("of another filter are not mixed with those that were being read", async () => {
    const logs = createLogs("run");
    count = 5;
    const first = logs.getState().load(ALL, 5);
    logs.getState().take([snapshot(9)]);
    count = 9;
    await Promise.all([first, logs.getState().load({ ...ALL, kind: "stdout" }, 9)]);
    await settled(logs);
    expect(textsOf(logs)).toEqual(linesFrom(1, 9));
  });

  it("say that they cannot be read, and can be read again", async () => {
    const logs = createLogs("run");
    count = 5;
    isAway = true;
    await logs.getState().load(ALL, 5);
    expect(logs.getState().error?.message).toBe("away");
    isAway = false;
    await logs.getState().load(ALL, 5);
    expect(logs.getState().error).toBeNull();
    expect(textsOf(logs)).toEqual(linesFrom(1, 5));
  });

  it("are bounded: the newest stay, and those before them are not read again", async () => {
    const logs = createLogs("run");
    count = 5_000;
    await logs.getState().load(ALL, 5_000);
    expect(logs.getState().older).not.toBeNull();
    logs.getState().take([joined(5_001, 5_000 + MAX_LINES + 1)]);
    const { lines, older, isTrimmed } = logs.getState();
    expect([lines.length, older, isTrimmed]).toEqual([MAX_LINES, null, true]);
    expect(lines.at(-1)?.text).toBe(`line ${5_000 + MAX_LINES + 1}`);
  });
});
