/** Events that wait to be shown. A view takes them ten times a second; if too many wait, a snapshot says it shorter. */

import type { RunEvent } from "./events";

export const FLUSH_MS = 100;
export const MAX_WAITING = 2_000;

export class EventBuffer {
  private waiting: RunEvent[] = [];
  private hasOverflown = false;

  /** Whether this is the first event that waits: then a flush has to be planned. */
  push(event: RunEvent): boolean {
    if (event.type === "run.snapshot") {
      this.waiting = [];
      this.hasOverflown = false;
    }
    const isFirst = this.waiting.length === 0 && !this.hasOverflown;
    if (this.waiting.length >= MAX_WAITING) {
      this.waiting = [];
      this.hasOverflown = true;
    }
    if (!this.hasOverflown) this.waiting.push(event);
    return isFirst;
  }

  /** What has come since the last time; `needsSnapshot` says that it was too much, and is not all. */
  take(): { readonly events: readonly RunEvent[]; readonly needsSnapshot: boolean } {
    const taken = { events: this.waiting, needsSnapshot: this.hasOverflown };
    this.waiting = [];
    return taken;
  }
}
