/** The first steps with the app: a list that ticks itself off while somebody uses it. */

import { create } from "zustand";
import { persist } from "zustand/middleware";

export const TOUR_STEPS = ["open", "run", "look", "save", "find"] as const;
export type TourStep = (typeof TOUR_STEPS)[number];

interface TourState {
  readonly done: readonly TourStep[];
  /** Somebody has closed it for good. */
  readonly isClosed: boolean;
}

export const useTour = create<TourState>()(
  persist((): TourState => ({ done: [], isClosed: false }), { name: "astraflow-tour" }),
);

/** Somebody has done this. */
export function tick(step: TourStep): void {
  const { done } = useTour.getState();
  if (!done.includes(step)) useTour.setState({ done: [...done, step] });
}

/** The first step that is left; null at the end. */
export function nextOf(done: readonly TourStep[]): TourStep | null {
  return TOUR_STEPS.find((step) => !done.includes(step)) ?? null;
}
