import { describe, expect, it } from "vitest";
import { peopleOf, queryOf, readRunsSearch } from "../src/runview/list/search";

describe("the filters of the list of runs", () => {
  it("are read from the address, without what is none", () => {
    const read = readRunsSearch({
      status: "failed",
      by: "ada",
      text: 7,
      time: "year",
      workflow: "",
      other: 1,
    });
    expect(read).toEqual({ status: "failed", by: "ada", text: "7" });
    expect(readRunsSearch({ by: { a: 1 } })).toEqual({});
  });

  it("are sent as the API takes them", () => {
    const now = Date.parse("2026-01-15T10:00:30Z");
    expect(queryOf({ by: "ada", workflow: "w", time: "hour" }, now)).toEqual({
      by: "ada",
      workflowId: "w",
      since: "2026-01-15T09:00:00.000Z",
    });
    expect(queryOf({}, now)).toEqual({});
  });

  it("offer oneself first, then each of the others once", () => {
    const runs = [{ by: "zoe" }, { by: "ada" }, {}, { by: "zoe" }, { by: "me" }];
    expect(peopleOf(runs, "me")).toEqual(["me", "ada", "zoe"]);
    expect(peopleOf(runs, null)).toEqual(["ada", "me", "zoe"]);
    expect(peopleOf([], null)).toEqual([]);
  });
});
