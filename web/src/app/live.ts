import { create } from "zustand";

/** Where the event stream of this browser stands. */
export type LiveState =
  | { readonly kind: "connecting" }
  | { readonly kind: "live" }
  | { readonly kind: "reconnecting"; readonly inSeconds: number }
  | { readonly kind: "offline"; readonly since: number };

/** What the shared worker tells each tab. */
export type LiveMessage =
  | { readonly kind: "state"; readonly state: LiveState }
  | { readonly kind: "event"; readonly type: string };

export const useLive = create<{ readonly state: LiveState }>()(() => ({ state: { kind: "connecting" } }));

/** Join the one stream of this browser: tabs share it, because a browser opens six connections to a host at most. */
export function joinLive(onEvent: (type: string) => void): () => void {
  const worker = new SharedWorker(new URL("./live.worker.ts", import.meta.url), {
    type: "module",
    name: "astraflow-live",
  });
  worker.port.onmessage = ({ data }: MessageEvent<LiveMessage>) => {
    if (data.kind === "state") useLive.setState({ state: data.state });
    else onEvent(data.type);
  };
  worker.port.start();
  const leave = (): void => worker.port.postMessage("leave");
  addEventListener("pagehide", leave);
  return () => {
    removeEventListener("pagehide", leave);
    leave();
    worker.port.close();
  };
}
