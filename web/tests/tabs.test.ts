import { beforeEach, describe, expect, test, vi } from "vitest";
import type { Source } from "../src/live/connection";
import type { ToTab } from "../src/live/messages";
import { holdLock, type Locks, whenFree } from "../src/live/tabLock";
import { Tabs } from "../src/live/tabs";

/** Locks of a browser: each is held by one at a time, and those who wait get it in turn. */
class FakeLocks implements Locks {
  private readonly ends = new Map<string, Promise<unknown>>();
  private readonly crashes = new Map<string, () => void>();

  request(name: string, callback: () => unknown): Promise<unknown> {
    const before = this.ends.get(name) ?? Promise.resolve();
    const crashed = new Promise<void>((resolve) => this.crashes.set(name, this.crashes.get(name) ?? resolve));
    const end = before.then(() => Promise.race([callback(), crashed]));
    this.ends.set(name, end);
    return end;
  }

  /** Whoever holds it is gone without a word. */
  crash(name: string): void {
    this.crashes.get(name)?.();
  }
}

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
};

interface OpenSource extends Source {
  readonly url: string;
  isClosed: boolean;
}

function browser(locks?: Locks) {
  const sources: OpenSource[] = [];
  const open = (url: string): Source => {
    const source: OpenSource = {
      url,
      isClosed: false,
      readyState: 0,
      onopen: null,
      onerror: null,
      addEventListener: () => {},
      close() {
        this.isClosed = true;
      },
    };
    sources.push(source);
    return source;
  };
  return { tabs: new Tabs({ open, locks }), sources };
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  return () => vi.useRealTimers();
});

describe("a lock of a tab", () => {
  test("is told of when it is held, and freed when it is given back", async () => {
    const locks = new FakeLocks();
    const told: string[] = [];
    const giveBack = holdLock(locks, "a", () => told.push("held"));
    await settle();
    expect(told).toEqual(["held"]);
    whenFree(locks, "a", () => told.push("free"));
    await settle();
    expect(told).toEqual(["held"]);
    giveBack();
    await settle();
    expect(told).toEqual(["held", "free"]);
  });

  test("that is given back before it was held tells nobody", async () => {
    const told: string[] = [];
    holdLock(new FakeLocks(), "a", () => told.push("held"))();
    await settle();
    expect(told).toEqual([]);
  });
});

describe("tabs that share a connection", () => {
  test("a tab that has crashed is forgotten with the runs that it followed", async () => {
    const locks = new FakeLocks();
    const { tabs, sources } = browser(locks);
    const heard: ToTab[] = [];
    const crashing = tabs.enter((message) => heard.push(message));
    const staying = tabs.enter(() => {});
    holdLock(locks, "tab-1", () => crashing({ kind: "held", lock: "tab-1" }));
    await settle();
    crashing({ kind: "follow", runId: "gone" });
    crashing({ kind: "loads", isWanted: true });
    vi.advanceTimersByTime(100);
    expect(sources.at(-1)?.url).toContain("gone");
    expect(sources.at(-1)?.url).toContain("workerLoad");

    locks.crash("tab-1");
    await settle();
    staying({ kind: "follow", runId: "stays" });
    vi.advanceTimersByTime(100);
    expect(sources.at(-1)?.url).toContain("stays");
    expect(sources.at(-1)?.url).not.toContain("gone");
    expect(sources.at(-1)?.url).not.toContain("workerLoad");
    const before = heard.length;
    sources.at(-1)?.onopen?.();
    expect(heard).toHaveLength(before);
    expect(sources.at(-1)?.isClosed).toBe(false);
  });

  test("the connection is closed when the last one has crashed", async () => {
    const locks = new FakeLocks();
    const { tabs, sources } = browser(locks);
    const take = tabs.enter(() => {});
    holdLock(locks, "tab-1", () => take({ kind: "held", lock: "tab-1" }));
    await settle();
    expect(sources.at(-1)?.isClosed).toBe(false);
    locks.crash("tab-1");
    await settle();
    expect(sources.at(-1)?.isClosed).toBe(true);
  });

  test("a tab that leaves and whose lock is freed then leaves once", async () => {
    const locks = new FakeLocks();
    const { tabs, sources } = browser(locks);
    const leaving = tabs.enter(() => {});
    const other = tabs.enter(() => {});
    const giveBack = holdLock(locks, "tab-1", () => leaving({ kind: "held", lock: "tab-1" }));
    await settle();
    leaving({ kind: "follow", runId: "both" });
    other({ kind: "follow", runId: "both" });
    giveBack();
    leaving({ kind: "leave" });
    await settle();
    other({ kind: "refresh", runId: "both" });
    vi.advanceTimersByTime(100);
    expect(sources.at(-1)?.url).toContain("both");
    expect(sources.at(-1)?.isClosed).toBe(false);
  });

  test("without locks a tab leaves when it says so", () => {
    const { tabs, sources } = browser();
    const take = tabs.enter(() => {});
    take({ kind: "held", lock: "tab-1" });
    take({ kind: "leave" });
    expect(sources.at(-1)?.isClosed).toBe(true);
  });
});
