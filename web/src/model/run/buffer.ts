/** Events that wait while somebody has paused the view. If too many wait, a snapshot says it shorter. */

import type { RunEvent } from "./events";

export const MAX_WAITING = 20_000;

export class EventBuffer {
  private waiting: RunEvent[] = [];
  private hasOverflown = false;
  /** How many have come, also those that are not kept. */
  count = 0;

  push(events: readonly RunEvent[]): void {
    for (const event of events) {
      this.count += 1;
      if (event.type === "run.snapshot") {
        // It says all that was before it.
        this.waiting = [];
        this.hasOverflown = false;
      }
      if (this.waiting.length >= MAX_WAITING) {
        this.waiting = [];
        this.hasOverflown = true;
      }
      if (!this.hasOverflown) this.waiting.push(event);
    }
  }

  /** All that has come, in its order; `needsSnapshot` says that it was too much, and is not kept. */
  take(): { readonly events: readonly RunEvent[]; readonly needsSnapshot: boolean } {
    const taken = { events: this.waiting, needsSnapshot: this.hasOverflown };
    this.waiting = [];
    this.hasOverflown = false;
    this.count = 0;
    return taken;
  }
}
