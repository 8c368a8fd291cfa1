/** What the address of the page says. */

import type { components } from "../../api/schema";

export type WorkerStatus = components["schemas"]["Worker"]["status"];

export const WORKER_STATUSES = [
  "online",
  "degraded",
  "draining",
  "lost",
  "offline",
] as const satisfies WorkerStatus[];

export interface WorkersSearch {
  readonly worker?: string;
  readonly text?: string;
  readonly status?: WorkerStatus;
}

export function readWorkersSearch(search: Record<string, unknown>): WorkersSearch {
  const { worker, text, status } = search;
  return {
    ...(typeof worker === "string" ? { worker } : {}),
    ...(typeof text === "string" && text !== "" ? { text } : {}),
    ...(WORKER_STATUSES.includes(status as WorkerStatus) ? { status: status as WorkerStatus } : {}),
  };
}
