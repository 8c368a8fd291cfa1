/** The stream as a tab sees it: its state, the events of the tenant, and those of the runs that are shown. */

import { create } from "zustand";
import type { RunEvent } from "../model/run/events";
import type { LiveState, TenantEvent, ToTab, ToWorker } from "./messages";
import { holdLock } from "./tabLock";

export const useLive = create<{ readonly state: LiveState }>()(() => ({ state: { kind: "connecting" } }));

type RunListener = (events: readonly RunEvent[]) => void;
type TenantListener = (events: readonly TenantEvent[]) => void;

const runs = new Map<string, Set<RunListener>>();
const tenant = new Set<TenantListener>();
let port: MessagePort | null = null;
let giveBack = (): void => {};

function send(message: ToWorker): void {
  port?.postMessage(message);
}

function receive({ data }: MessageEvent<ToTab>): void {
  switch (data.kind) {
    case "state":
      useLive.setState({ state: data.state });
      break;
    case "tenant":
      for (const listener of tenant) listener(data.events);
      break;
    case "run":
      for (const listener of runs.get(data.runId) ?? []) listener(data.events);
  }
}

function enter(): void {
  const worker = new SharedWorker(new URL("./stream.worker.ts", import.meta.url), {
    type: "module",
    name: "astraflow-stream",
  });
  port = worker.port;
  port.onmessage = receive;
  port.start();
  for (const runId of runs.keys()) send({ kind: "follow", runId });
  hold();
}

/** The browser frees the lock of a tab that has crashed, so that the worker learns of it. */
function hold(): void {
  // The type promises locks, and a page without a secure context has none.
  const locks: LockManager | undefined = navigator.locks;
  if (locks === undefined) return;
  const lock = `astraflow-tab-${crypto.randomUUID()}`;
  giveBack = holdLock(locks, lock, () => send({ kind: "held", lock }));
}

function leave(): void {
  giveBack();
  send({ kind: "leave" });
  port?.close();
  port = null;
}

/** Join the one stream of this browser: tabs share it, because a browser opens six connections to a host at most. */
export function joinLive(): () => void {
  enter();
  const wake = (): void => send({ kind: "wake" });
  const lose = (): void => send({ kind: "lose" });
  // A page that comes back from the history of the browser has left before.
  const show = (event: PageTransitionEvent): void => {
    if (event.persisted) enter();
  };
  addEventListener("pagehide", leave);
  addEventListener("pageshow", show);
  addEventListener("online", wake);
  addEventListener("offline", lose);
  return () => {
    removeEventListener("pagehide", leave);
    removeEventListener("pageshow", show);
    removeEventListener("online", wake);
    removeEventListener("offline", lose);
    leave();
  };
}

export function onTenantEvents(listener: TenantListener): () => void {
  tenant.add(listener);
  return () => void tenant.delete(listener);
}

/** Follow a run. It begins with a snapshot of the run. */
export function followRun(runId: string, listener: RunListener): () => void {
  const known = runs.get(runId);
  if (known === undefined) runs.set(runId, new Set([listener]));
  else known.add(listener);
  send({ kind: "follow", runId });
  return () => {
    const listeners = runs.get(runId);
    listeners?.delete(listener);
    if (listeners?.size === 0) runs.delete(runId);
    send({ kind: "unfollow", runId });
  };
}

/** Ask for a snapshot of a run that is followed: what came was too much, or some of it is missing. */
export function refreshRun(runId: string): void {
  send({ kind: "refresh", runId });
}

/** Have the load of workers told while somebody looks at it. */
export function wantLoads(isWanted: boolean): void {
  send({ kind: "loads", isWanted });
}
