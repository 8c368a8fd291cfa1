import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Connection, type Source } from "../src/live/connection";
import type { LiveState, TenantEvent } from "../src/live/messages";
import { positionFor, readPosition } from "../src/live/position";
import type { RunEvent } from "../src/model/run/events";

class FakeSource implements Source {
  onopen: (() => void) | null = null;
  onerror: (() => void) | null = null;
  isClosed = false;
  readyState = 0;
  private readonly listeners = new Map<string, (event: { data: string; lastEventId: string }) => void>();

  constructor(readonly url: string) {}

  addEventListener(type: string, listener: (event: { data: string; lastEventId: string }) => void): void {
    this.listeners.set(type, listener);
  }

  close(): void {
    this.isClosed = true;
  }

  send(lastEventId: string, ...events: object[]): void {
    this.listeners.get("batch")?.({ data: JSON.stringify({ events }), lastEventId });
  }

  ping(): void {
    this.listeners.get("ping")?.({ data: "{}", lastEventId: "" });
  }

  get query(): URLSearchParams {
    return new URL(this.url, "http://host").searchParams;
  }
}

function connected() {
  const sources: FakeSource[] = [];
  const states: LiveState[] = [];
  const tenant: TenantEvent[] = [];
  const runs: [string, readonly RunEvent[]][] = [];
  const connection = new Connection({
    open: (url) => {
      const source = new FakeSource(url);
      sources.push(source);
      return source;
    },
    onState: (state) => states.push(state),
    onTenant: (events) => tenant.push(...events),
    onRun: (runId, events) => runs.push([runId, events]),
  });
  connection.start();
  const last = (): FakeSource => sources.at(-1) as FakeSource;
  return { connection, sources, states, tenant, runs, last };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("the position of a stream", () => {
  it("is read and written for the runs that are followed", () => {
    const position = readPosition("17,A:45,B:7");
    expect(positionFor(position, ["B", "A"])).toBe("17,B:7,A:45");
    expect(positionFor(position, ["C"])).toBe("17");
    expect(positionFor(null, ["A"])).toBe("");
    expect(readPosition("17").runs.size).toBe(0);
  });
});

describe("the connection", () => {
  it("gives events of the tenant to all, and those of a run by run", () => {
    const { last, tenant, runs, states } = connected();
    last().onopen?.();
    last().send(
      "3,A:2",
      { id: 3, type: "worker.online", data: {} },
      { runId: "A", id: 1, type: "run.status", data: {} },
      { runId: "A", id: 2, type: "node.state", data: {} },
    );
    expect(states.at(-1)).toEqual({ kind: "live" });
    expect(tenant.map((event) => event.type)).toEqual(["worker.online"]);
    expect(runs).toHaveLength(1);
    expect(runs[0]?.[1]).toHaveLength(2);
  });

  it("connects anew for another run, once for several, and goes on where it was", () => {
    const { connection, sources, last } = connected();
    last().onopen?.();
    connection.follow("A");
    connection.follow("B");
    vi.advanceTimersByTime(50);
    expect(sources).toHaveLength(2);
    expect(sources[0]?.isClosed).toBe(true);
    expect(last().query.get("runs")).toBe("A,B");
    last().send("5,A:1,B:2");
    connection.follow("C");
    vi.advanceTimersByTime(50);
    expect(last().query.get("runs")).toBe("A,B,C");
    expect(last().query.get("lastEventId")).toBe("5,A:1,B:2");
  });

  it("begins a run with a snapshot for each tab that follows it", () => {
    const { connection, last } = connected();
    connection.follow("A");
    vi.advanceTimersByTime(50);
    last().send("5,A:9");
    connection.follow("A");
    vi.advanceTimersByTime(50);
    expect(last().query.get("lastEventId")).toBe("5");
    connection.unfollow("A");
    connection.follow("B");
    vi.advanceTimersByTime(50);
    expect(last().query.get("runs")).toBe("A,B");
    connection.unfollow("A");
    connection.refresh("B");
    vi.advanceTimersByTime(50);
    expect(last().query.get("runs")).toBe("B");
  });

  it("asks for the snapshot also if the old stream speaks before the new one is opened", () => {
    const { connection, sources, last } = connected();
    connection.follow("A");
    vi.advanceTimersByTime(100);
    last().send("5,A:2", { runId: "A", id: 2, type: "run.status", data: {} });
    connection.follow("A");
    last().send("6,A:3", { runId: "A", id: 3, type: "node.result.delta", data: {} });
    vi.advanceTimersByTime(100);
    expect(last().query.get("lastEventId")).toBe("6");
    // The new one fails before it has said anything: the snapshot is still owed.
    const opened = sources.length;
    last().onerror?.();
    vi.advanceTimersByTime(2_000);
    expect(sources.length).toBeGreaterThan(opened);
    expect(last().query.get("lastEventId")).toBe("6");
    last().send("6,A:4", { runId: "A", id: 4, type: "run.snapshot", data: {} });
    connection.follow("B");
    vi.advanceTimersByTime(100);
    expect(last().query.get("lastEventId")).toBe("6,A:4");
  });

  it("follows no more runs than a stream may have: those that were opened last", () => {
    const { connection, last } = connected();
    for (let number = 0; number < 103; number += 1) connection.follow(`R${number}`);
    vi.advanceTimersByTime(50);
    const runs = last().query.get("runs")?.split(",");
    expect(runs).toHaveLength(100);
    expect(runs?.[0]).toBe("R3");
  });

  it("takes nothing of a stream that it has left", () => {
    const { connection, sources, runs, last } = connected();
    connection.follow("A");
    vi.advanceTimersByTime(50);
    sources[0]?.send("9,A:4", { runId: "A", id: 4, type: "node.state", data: {} });
    sources[0]?.onerror?.();
    expect(runs).toEqual([]);
    expect(last().isClosed).toBe(false);
  });

  it("tries again, slower each time, and resumes", () => {
    const { sources, states, last } = connected();
    last().onopen?.();
    last().send("5");
    for (const [seconds, kind] of [
      [1, "reconnecting"],
      [2, "reconnecting"],
      [5, "reconnecting"],
      [10, "offline"],
      [30, "offline"],
      [30, "offline"],
    ] as const) {
      last().onerror?.();
      expect(states.at(-1)?.kind).toBe(kind);
      const before = sources.length;
      vi.advanceTimersByTime(seconds * 1000 - 1);
      expect(sources).toHaveLength(before);
      vi.advanceTimersByTime(1);
      expect(sources).toHaveLength(before + 1);
    }
    expect(last().query.get("lastEventId")).toBe("5");
    last().onopen?.();
    expect(states.at(-1)).toEqual({ kind: "live" });
  });

  it("begins anew where the server refuses its position", () => {
    const { last } = connected();
    last().send("5");
    last().readyState = 2;
    last().onerror?.();
    vi.advanceTimersByTime(1000);
    expect(last().query.get("lastEventId")).toBeNull();
  });

  it("gives a stream up that is silent, and not one that pings", () => {
    const { sources, states, last } = connected();
    last().onopen?.();
    for (let minute = 0; minute < 10; minute += 1) {
      vi.advanceTimersByTime(30_000);
      last().ping();
    }
    expect(sources).toHaveLength(1);
    vi.advanceTimersByTime(40_000);
    expect(sources[0]?.isClosed).toBe(true);
    expect(states.at(-1)?.kind).toBe("reconnecting");
    vi.advanceTimersByTime(1_000);
    expect(sources).toHaveLength(2);
  });

  it("tries again at once when the network is back", () => {
    const { connection, sources, states, last } = connected();
    last().onopen?.();
    connection.lose();
    expect(states.at(-1)?.kind).toBe("reconnecting");
    connection.wake();
    expect(sources).toHaveLength(2);
    last().onopen?.();
    expect(states.at(-1)?.kind).toBe("live");
  });

  it("does not wait for the next try when it is woken, and ends when it is stopped", () => {
    const { connection, sources, last } = connected();
    last().onerror?.();
    connection.wake();
    expect(sources).toHaveLength(2);
    connection.wake();
    expect(sources).toHaveLength(2);
    connection.stop();
    expect(last().isClosed).toBe(true);
    vi.advanceTimersByTime(60_000);
    connection.wake();
    expect(sources).toHaveLength(2);
  });

  it("asks for the load of workers while somebody wants it", () => {
    const { connection, last } = connected();
    connection.wantLoads(true);
    vi.advanceTimersByTime(50);
    expect(last().query.get("workerLoad")).toBe("true");
    connection.wantLoads(true);
    connection.wantLoads(false);
    vi.advanceTimersByTime(50);
    expect(last().query.get("workerLoad")).toBeNull();
  });
});
