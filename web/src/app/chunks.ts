/**
 * Chunks of the app that are loaded when somebody needs them, or before that when the page is at rest: who has the
 * editor open and loses the network still has all of the editor.
 *
 * Rule 1: a chunk that cannot be loaded because the scheduler cannot be reached is tried again until it can.
 * Rule 2: one that a scheduler does not give fails: it belongs to another release, and the page must be loaded again.
 */

import { type ComponentType, type LazyExoticComponent, lazy } from "react";

type Load<T> = () => Promise<T>;

const RETRY_MS = 2_000;
const REST_MS = 2_500;

const ahead: Load<unknown>[] = [];
let isAtRest = false;
let isLoading = false;

async function isReachable(): Promise<boolean> {
  try {
    await fetch("/healthz", { cache: "no-store" });
    return true;
  } catch {
    return false;
  }
}

/** Resolves after a time, or at once when the browser says that there is a network again. */
function pause(): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      removeEventListener("online", end);
      resolve();
    };
    const timer = setTimeout(end, RETRY_MS);
    addEventListener("online", end);
  });
}

async function insist<T>(load: Load<T>): Promise<T> {
  for (;;) {
    try {
      return await load();
    } catch {
      // The network may have been away just then: a scheduler that answers gets a second request for it.
      if (await isReachable()) return load();
      await pause();
    }
  }
}

async function loadAhead(): Promise<void> {
  if (!isAtRest || isLoading) return;
  isLoading = true;
  for (let load = ahead.shift(); load !== undefined; load = ahead.shift())
    await load().catch(() => undefined);
  isLoading = false;
}

/** What loads a chunk: the first call, or the page at rest. */
export function chunk<T>(load: Load<T>): Load<T> {
  let loaded: Promise<T> | null = null;
  const once = (): Promise<T> => {
    loaded ??= insist(load).catch((error: unknown) => {
      loaded = null;
      throw error;
    });
    return loaded;
  };
  ahead.push(once);
  void loadAhead();
  return once;
}

/** A component in a chunk of its own. */
// biome-ignore lint/suspicious/noExplicitAny: the constraint of React's own lazy
export function lazyChunk<T extends ComponentType<any>>(load: Load<{ default: T }>): LazyExoticComponent<T> {
  return lazy(chunk(load));
}

/** From here on chunks are loaded ahead, one after the other, once the first page has come to rest. */
export function loadChunksAhead(): void {
  setTimeout(() => {
    isAtRest = true;
    void loadAhead();
  }, REST_MS);
}
