import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

const online = new EventTarget();

describe("chunks", () => {
  let chunks: typeof import("../src/app/chunks");
  let isReachable = true;

  beforeEach(async () => {
    vi.useFakeTimers();
    vi.resetModules();
    isReachable = true;
    vi.stubGlobal("fetch", async () => {
      if (!isReachable) throw new TypeError("Failed to fetch");
      return new Response();
    });
    vi.stubGlobal("addEventListener", online.addEventListener.bind(online));
    vi.stubGlobal("removeEventListener", online.removeEventListener.bind(online));
    chunks = await import("../src/app/chunks");
  });

  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it("loads a chunk once, whoever asks", async () => {
    const load = vi.fn(async () => "code");
    const ask = chunks.chunk(load);
    expect(await Promise.all([ask(), ask()])).toEqual(["code", "code"]);
    expect(load).toHaveBeenCalledTimes(1);
  });

  it("waits for the scheduler when it cannot be reached", async () => {
    isReachable = false;
    const load = vi.fn(async () => {
      if (!isReachable) throw new TypeError("Failed to fetch dynamically imported module");
      return "code";
    });
    const asked = chunks.chunk(load)();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(load.mock.calls.length).toBeGreaterThan(2);
    isReachable = true;
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await asked).toBe("code");
  });

  it("tries at once when the network is back", async () => {
    isReachable = false;
    const asked = chunks.chunk(async () => {
      if (!isReachable) throw new TypeError("Failed to fetch dynamically imported module");
      return "code";
    })();
    await vi.advanceTimersByTimeAsync(10);
    isReachable = true;
    online.dispatchEvent(new Event("online"));
    expect(await asked).toBe("code");
  });

  it("fails for a chunk that the scheduler does not have, and can be asked again", async () => {
    const load = vi.fn(async () => {
      throw new TypeError("404");
    });
    const ask = chunks.chunk(load);
    await expect(ask()).rejects.toThrow("404");
    expect(load).toHaveBeenCalledTimes(2);
    await expect(ask()).rejects.toThrow("404");
    expect(load).toHaveBeenCalledTimes(4);
  });

  it("loads ahead when the page is at rest, also what is registered later, and goes on after a failure", async () => {
    const bad = vi.fn(async () => {
      throw new TypeError("404");
    });
    const first = vi.fn(async () => 1);
    chunks.chunk(bad);
    chunks.chunk(first);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(first).not.toHaveBeenCalled();
    chunks.loadChunksAhead();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(bad).toHaveBeenCalled();
    expect(first).toHaveBeenCalledTimes(1);
    const later = vi.fn(async () => 2);
    const ask = chunks.chunk(later);
    await vi.advanceTimersByTimeAsync(10);
    expect(await ask()).toBe(2);
    expect(later).toHaveBeenCalledTimes(1);
  });
});
