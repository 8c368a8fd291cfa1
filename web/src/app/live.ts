import { create } from "zustand";

/** Where the event stream of this browser stands. */
export type LiveState =
  | { kind: "connecting" }
  | { kind: "live" }
  | { kind: "reconnecting"; inSeconds: number }
  | { kind: "offline"; since: Date };

interface LiveStore {
  readonly state: LiveState;
  readonly set: (state: LiveState) => void;
}

export const useLive = create<LiveStore>()((set) => ({
  state: { kind: "connecting" },
  set: (state) => set({ state }),
}));
