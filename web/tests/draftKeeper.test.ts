import { beforeEach, describe, expect, it } from "vitest";
import { DraftKeeper, type SaveFailure, type SaveState } from "../src/editor/draftKeeper";
import type { LocalCopies, LocalCopy } from "../src/editor/localCopies";
import { MissingWorkflow, openWorkflow } from "../src/editor/opening";

class Copies implements LocalCopies {
  kept: LocalCopy | null = null;
  async get(): Promise<LocalCopy | null> {
    return this.kept;
  }
  async put(copy: LocalCopy): Promise<void> {
    this.kept = copy;
  }
  putNow(copy: LocalCopy): void {
    this.kept = copy;
  }
  async remove(): Promise<void> {
    this.kept = null;
  }
}

class Clock {
  private timers: { run: () => void; at: number }[] = [];
  private time = 0;
  readonly wait = (run: () => void, milliseconds: number): (() => void) => {
    const timer = { run, at: this.time + milliseconds };
    this.timers.push(timer);
    return () => {
      this.timers = this.timers.filter((one) => one !== timer);
    };
  };
  async pass(milliseconds: number): Promise<void> {
    this.time += milliseconds;
    const due = this.timers.filter((one) => one.at <= this.time);
    this.timers = this.timers.filter((one) => one.at > this.time);
    for (const one of due) one.run();
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
  }
}

describe("the keeper of a draft", () => {
  let copies: Copies;
  let clock: Clock;
  let saves: { text: string; revision: number }[];
  let failure: SaveFailure | null;
  let states: SaveState["kind"][];
  let stale: number;
  let keeper: DraftKeeper;
  let answer: (() => void) | null;
  let isHeld: boolean;

  beforeEach(() => {
    copies = new Copies();
    clock = new Clock();
    saves = [];
    failure = null;
    states = [];
    stale = 0;
    answer = null;
    isHeld = false;
    keeper = new DraftKeeper({
      workflowId: "w",
      revision: 3,
      version: 1,
      save: async (text, revision) => {
        saves.push({ text, revision });
        if (isHeld)
          await new Promise<void>((resolve) => {
            answer = resolve;
          });
        if (failure !== null) throw new Error("no");
        return revision + 1;
      },
      failureOf: () => failure ?? { kind: "offline" },
      copies,
      now: () => 7,
      wait: clock.wait,
      onState: (state) => states.push(state.kind),
      onStale: () => {
        stale += 1;
      },
    });
  });

  it("keeps edits in the browser first, and sends the last of them once", async () => {
    keeper.change("one");
    await clock.pass(150);
    expect(copies.kept?.text).toBe("one");
    expect(saves).toEqual([]);
    keeper.change("two");
    await clock.pass(700);
    expect(saves).toEqual([{ text: "two", revision: 3 }]);
    expect(keeper.revision).toBe(4);
    expect(copies.kept).toBeNull();
    expect(states.at(-1)).toBe("saved");
  });

  it("sends what was edited during a save afterwards, never two at a time", async () => {
    isHeld = true;
    keeper.change("one");
    await clock.pass(700);
    keeper.change("two");
    await clock.pass(700);
    expect(saves).toHaveLength(1);
    isHeld = false;
    answer?.();
    await clock.pass(0);
    await clock.pass(700);
    expect(saves).toEqual([
      { text: "one", revision: 3 },
      { text: "two", revision: 4 },
    ]);
    expect(keeper.isDirty).toBe(false);
  });

  it("never saves over somebody else unasked", async () => {
    failure = { kind: "conflict" };
    keeper.change("mine");
    await clock.pass(700);
    expect(keeper.current).toEqual({ kind: "conflict", by: null });
    keeper.change("mine, too");
    await clock.pass(10_000);
    expect(saves).toHaveLength(1);
    expect(copies.kept?.text).toBe("mine, too");
    failure = null;
    await keeper.overwrite(8, 2);
    expect(saves[1]).toEqual({ text: "mine, too", revision: 8 });
    expect(keeper.revision).toBe(9);
    expect(keeper.version).toBe(2);
  });

  it("goes on offline, and sends when the connection is back", async () => {
    failure = { kind: "offline" };
    keeper.change("one");
    await clock.pass(700);
    expect(keeper.current.kind).toBe("offline");
    expect(copies.kept?.text).toBe("one");
    failure = null;
    keeper.wake();
    await clock.pass(0);
    expect(keeper.current.kind).toBe("saved");
  });

  it("tries again by itself while the scheduler is away", async () => {
    failure = { kind: "offline" };
    keeper.change("one");
    await clock.pass(700);
    failure = null;
    await clock.pass(5_000);
    expect(keeper.current.kind).toBe("saved");
  });

  it("tells its own saves from those of others", async () => {
    isHeld = true;
    keeper.change("one");
    await clock.pass(700);
    // The event comes before the answer.
    keeper.hear({ revision: 4, version: null, by: "me" });
    answer?.();
    await clock.pass(0);
    expect(keeper.current.kind).toBe("saved");
    expect(stale).toBe(0);
    keeper.hear({ revision: 5, version: null, by: "ann" });
    expect(stale).toBe(1);
    keeper.change("two");
    keeper.hear({ revision: 6, version: null, by: "ann" });
    expect(keeper.current).toEqual({ kind: "conflict", by: "ann" });
  });

  it("says why a save was refused", async () => {
    failure = { kind: "refused", message: "too large" };
    keeper.change("one");
    await clock.pass(700);
    expect(keeper.current).toEqual({ kind: "failed", message: "too large" });
    expect(keeper.isDirty).toBe(true);
  });

  it("begins anew with the version that it published, also if the event comes first", async () => {
    keeper.change("one");
    const published = keeper.publish(async (revision) => {
      expect(revision).toBe(4);
      keeper.hear({ revision: null, version: 2, by: "me" });
      return 2;
    });
    await clock.pass(0);
    expect(await published).toBe(2);
    await clock.pass(0);
    expect(saves).toEqual([{ text: "one", revision: 3 }]);
    expect([keeper.revision, keeper.version, keeper.current.kind, stale]).toEqual([0, 2, "clean", 0]);
  });

  it("stays a draft when publishing is refused", async () => {
    const published = keeper.publish(async () => {
      throw new Error("there are errors");
    });
    await expect(published).rejects.toThrow("errors");
    expect(keeper.revision).toBe(3);
    keeper.hear({ revision: 4, version: null, by: "ann" });
    expect(stale).toBe(1);
  });

  it("tells of a workflow that was deleted, and makes it anew if it is asked to", async () => {
    keeper.hear({ revision: null, version: null, by: "ann", isDeleted: true });
    expect(keeper.current).toEqual({ kind: "deleted", by: "ann" });
    keeper.change("mine");
    await clock.pass(10_000);
    expect(saves).toEqual([]);
    await keeper.overwrite(0, 0);
    expect(saves).toEqual([{ text: "mine", revision: 0 }]);
  });

  it("leaves the last edits in the browser at once when the page goes", () => {
    keeper.leave();
    expect(copies.kept).toBeNull();
    keeper.change("one");
    keeper.leave();
    expect(copies.kept).toEqual({ workflowId: "w", text: "one", revision: 3, version: 1, at: 7 });
  });

  it("keeps the last edits when it is closed, and sends nothing more", async () => {
    keeper.change("one");
    keeper.close();
    await clock.pass(0);
    expect(copies.kept?.text).toBe("one");
    await clock.pass(10_000);
    expect(saves).toEqual([]);
  });
});

describe("opening", () => {
  const server = { text: "{}", revision: 2, version: 1, savedAt: null, savedBy: "ann" };

  it("takes what the scheduler has, or edits that it lacks", async () => {
    const copies = new Copies();
    expect(await openWorkflow("w", null, async () => server, copies)).toMatchObject({
      isRestored: false,
      text: "{}",
    });
    copies.kept = { workflowId: "w", text: "mine", revision: 2, version: 1, at: 0 };
    expect(await openWorkflow("w", null, async () => server, copies)).toMatchObject({
      isRestored: true,
      isConflict: false,
      text: "mine",
    });
    copies.kept = { workflowId: "w", text: "mine", revision: 1, version: 1, at: 0 };
    expect(await openWorkflow("w", null, async () => server, copies)).toMatchObject({ isConflict: true });
  });

  it("makes a new one only if it is asked to", async () => {
    const copies = new Copies();
    await expect(openWorkflow("w", null, async () => null, copies)).rejects.toBeInstanceOf(MissingWorkflow);
    expect((await openWorkflow("w", "New", async () => null, copies)).text).toContain('"New"');
  });
});
