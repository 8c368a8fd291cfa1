/** What tabs and the shared worker tell each other. */

import type { RunEvent } from "../model/run/events";

/** Where the event stream of this browser stands. */
export type LiveState =
  | { readonly kind: "connecting" }
  | { readonly kind: "live" }
  | { readonly kind: "reconnecting"; readonly inSeconds: number }
  | { readonly kind: "offline"; readonly since: number };

/** An event of the tenant, as of a worker or a workflow. */
export interface TenantEvent {
  readonly type: string;
  readonly data: unknown;
}

export type ToTab =
  | { readonly kind: "state"; readonly state: LiveState }
  | { readonly kind: "tenant"; readonly events: readonly TenantEvent[] }
  | { readonly kind: "run"; readonly runId: string; readonly events: readonly RunEvent[] };

export type ToWorker =
  /** The tab holds this lock for as long as it is there. */
  | { readonly kind: "held"; readonly lock: string }
  | { readonly kind: "follow"; readonly runId: string }
  | { readonly kind: "unfollow"; readonly runId: string }
  /** Begin again with a snapshot. */
  | { readonly kind: "refresh"; readonly runId: string }
  | { readonly kind: "loads"; readonly isWanted: boolean }
  | { readonly kind: "wake" }
  | { readonly kind: "lose" }
  | { readonly kind: "leave" };
