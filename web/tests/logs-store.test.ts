import { beforeEach, describe, expect, it, vi } from "vitest";
import type { RunEvent } from "../src/model/run/events";
import type { LogFilter } from "../src/runview/logs/lines";

interface Page {
  readonly items: readonly object[];
  readonly nextCursor: string | null;
}

const asked: (string | undefined)[] = [];
let answer: (cursor: string | undefined) => Promise<Page>;

vi.mock("../src/api/client", () => ({
  api: {
    GET: async (_: string, { params }: { params: { query: { cursor?: string } } }) => {
      asked.push(params.query.cursor);
      return answer(params.query.cursor);
    },
  },
  dataOf: (page: Page) => page,
}));

const { createLogs } = await import("../src/runview/logs/store");
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
const lines = (from: number, to: number): readonly string[] =>
  Array.from({ length: to - from + 1 }, (_, place) => `line ${from + place}`);
/** The newest lines first, as the API has them. */
const page = (from: number, to: number, nextCursor: string | null = null): Page => ({
  items: Array.from({ length: to - from + 1 }, (_, place) => stored(to - place)),
  nextCursor,
});

describe("the lines of a run", () => {
  beforeEach(() => void asked.splice(0));

  it("has what came between the answer and the snapshot of the stream", async () => {
    const logs = createLogs("run");
    answer = async () => page(1, 3);
    await logs.getState().load(ALL);
    answer = async () => page(1, 6);
    logs.getState().take([snapshot(6)]);
    logs.getState().take([told(7)]);
    await vi.waitFor(() => expect(textsOf(logs)).toEqual(lines(1, 7)));
    expect(logs.getState().isLoading).toBe(false);
  });

  it("has each line once, however the live stream has joined them", async () => {
    const logs = createLogs("run");
    answer = async () => {
      // While the page is read the stream goes on: the page has some of what it tells.
      logs.getState().take([joined(2, 5)]);
      logs.getState().take([joined(6, 9)]);
      return page(1, 7);
    };
    await logs.getState().load(ALL);
    expect(textsOf(logs)).toEqual(lines(1, 9));
    logs.getState().take([joined(10, 12)]);
    expect(textsOf(logs)).toEqual(lines(1, 12));
    logs.getState().take([joined(10, 12)]);
    expect(textsOf(logs)).toEqual(lines(1, 12));
    answer = async () => page(5, 14, "before 5");
    logs.getState().take([snapshot(13)]);
    logs.getState().take([joined(14, 16)]);
    await vi.waitFor(() => expect(textsOf(logs)).toEqual(lines(1, 16)));
  });

  it("lets old lines go rather than show a gap, and can read them again", async () => {
    const logs = createLogs("run");
    answer = async () => page(1, 3);
    await logs.getState().load(ALL);
    answer = async (cursor) => (cursor === undefined ? page(2_001, 2_003, "before") : page(1, 2_000));
    logs.getState().take([snapshot(2_003)]);
    // What comes after the snapshot does not hide what is missing before it.
    logs.getState().take([joined(2_004, 2_006)]);
    await vi.waitFor(() => expect(logs.getState().older).toBe("before"));
    expect(textsOf(logs)).toEqual(lines(2_001, 2_006));
    await logs.getState().loadOlder();
    expect(textsOf(logs)).toEqual(lines(1, 2_006));
    expect(asked.at(-1)).toBe("before");
  });

  it("begins again after a snapshot if nothing was read before", async () => {
    const logs = createLogs("run");
    answer = async () => page(1, 0);
    await logs.getState().load(ALL);
    answer = async () => page(1, 2);
    logs.getState().take([snapshot(2)]);
    await vi.waitFor(() => expect(textsOf(logs)).toEqual(lines(1, 2)));
  });

  it("keeps what is known if the lines cannot be read", async () => {
    const logs = createLogs("run");
    answer = async () => page(1, 2);
    await logs.getState().load(ALL);
    answer = async () => {
      throw new Error("away");
    };
    logs.getState().take([snapshot(5)]);
    await vi.waitFor(() => expect(asked).toHaveLength(2));
    expect(textsOf(logs)).toEqual(lines(1, 2));
    expect(logs.getState().error).toBeNull();
  });

  it("passes over what events have told to find older lines", async () => {
    const logs = createLogs("run");
    answer = async () => {
      logs.getState().take(Array.from({ length: 500 }, (_, place) => told(501 + place)));
      return page(901, 1_000, "before 901");
    };
    await logs.getState().load(ALL);
    const pages: Record<string, Page> = {
      "before 901": page(701, 900, "before 701"),
      "before 701": page(501, 700, "before 501"),
      "before 501": page(301, 500, "before 301"),
    };
    answer = async (cursor) => pages[cursor ?? ""] as Page;
    await logs.getState().loadOlder();
    expect(logs.getState().lines[0]?.id).toBe(301);
    expect(logs.getState().older).toBe("before 301");
    expect(logs.getState().lines).toHaveLength(700);
  });
});
