import { describe, expect, it } from "vitest";
import { newestOf, type WorkflowReads } from "../src/editor/newest";
import type { Opened } from "../src/editor/requests";

const opened = (text: string): Opened => ({ text, revision: 0, version: 0, savedAt: null, savedBy: null });

const GONE = new Error("gone");

/** A scheduler that has some of it, and a record of what it was asked for. */
function reads(has: { draft: boolean; version: boolean }, more: Partial<WorkflowReads> = {}) {
  const asked: string[] = [];
  const note =
    <T>(name: string, value: T) =>
    async (): Promise<T> => {
      asked.push(name);
      return value;
    };
  const all: WorkflowReads = {
    hasDraft: note("hasDraft", has.draft),
    hasVersion: note("hasVersion", has.version),
    readDraft: note("readDraft", opened("draft")),
    readVersion: note("readVersion", opened("version")),
    isMissing: (error) => error === GONE,
    ...more,
  };
  return { all, asked };
}

const missing = async (): Promise<never> => {
  throw GONE;
};

describe("what of a workflow is opened", () => {
  it("is the draft, if there is one", async () => {
    const { all, asked } = reads({ draft: true, version: true });
    expect((await newestOf("w", false, all))?.text).toBe("draft");
    expect(asked).toEqual(["hasDraft", "readDraft"]);
  });

  it("is the newest version, without asking for a draft that is not there", async () => {
    const { all, asked } = reads({ draft: false, version: true });
    expect((await newestOf("w", false, all))?.text).toBe("version");
    expect(asked).toEqual(["hasDraft", "readVersion"]);
  });

  it("is nothing for a new workflow, and nothing is asked for that is not there", async () => {
    const { all, asked } = reads({ draft: false, version: false });
    expect(await newestOf("w", true, all)).toBeNull();
    expect(asked).toEqual(["hasDraft", "hasVersion"]);
  });

  it("is the version of a workflow that was new until somebody published it", async () => {
    const { all } = reads({ draft: false, version: true });
    expect((await newestOf("w", true, all))?.text).toBe("version");
  });

  it("is the version, if the draft is published between two requests", async () => {
    const { all } = reads({ draft: true, version: true }, { readDraft: missing });
    expect((await newestOf("w", false, all))?.text).toBe("version");
  });

  it("is nothing, if it is deleted between two requests", async () => {
    const { all } = reads({ draft: true, version: true }, { readDraft: missing, readVersion: missing });
    expect(await newestOf("w", false, all)).toBeNull();
  });

  it("passes on other failures", async () => {
    const broken = async (): Promise<never> => {
      throw new Error("away");
    };
    const { all } = reads({ draft: true, version: true }, { readDraft: broken });
    await expect(newestOf("w", false, all)).rejects.toThrow("away");
  });
});
