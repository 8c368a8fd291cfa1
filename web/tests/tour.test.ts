import { describe, expect, it } from "vitest";
import { nextOf, TOUR_STEPS, tick, useTour } from "../src/tour/tour";

describe("the tour", () => {
  it("ticks each step once, in any order, and names the first that is left", () => {
    expect(nextOf(useTour.getState().done)).toBe("open");
    tick("run");
    tick("run");
    expect(useTour.getState().done).toEqual(["run"]);
    expect(nextOf(useTour.getState().done)).toBe("open");
    for (const step of TOUR_STEPS) tick(step);
    expect(nextOf(useTour.getState().done)).toBeNull();
  });
});
