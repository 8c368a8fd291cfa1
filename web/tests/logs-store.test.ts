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

const ALL: LogFilter = { kind: "all", level: "debug", nodeId: null, scopePath: null, text: "" };
const at = "2026-01-15T10:00:00.000Z";
const stored = (id: number) => ({
  id,
  occurredAt: at,
  nodeId: "n",
  attempt: 1,
  channel: "stdout",
  text: `line ${id}`,
});
const told = (id: number): RunEvent => ({
  id,
  type: "node.result.delta",
  occurredAt: at,
  data: { nodeId: "n", attempt: 1, channel: "stdout", text: `line ${id}` },
});
/** The newest lines first, as the API has them. */
const page = (from: number, to: number, nextCursor: string | null = null): Page => ({
  items: Array.from({ length: to - from + 1 }, (_, place) => stored(to - place)),
  nextCursor,
});

describe("the lines of a run", () => {
  beforeEach(() => void asked.splice(0));

  it("passes over what events have told to find older lines", async () => {
    const logs = createLogs("run");
    answer = async () => page(901, 1_000, "before 901");
    await logs.getState().load(ALL);
    logs.getState().take(Array.from({ length: 400 }, (_, place) => told(501 + place)));
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
