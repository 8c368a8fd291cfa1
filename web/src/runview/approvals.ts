/** The open approvals of a tenant: whose they are, and in which order they are shown. */

import type { Session } from "../api/client";
import type { components } from "../api/schema";
import { may } from "../app/rights";

export type OpenApproval = components["schemas"]["OpenApproval"];

/** A badge with more digits is wider than the rail. */
export const MANY_APPROVALS = 99;

/** As the scheduler decides (`core/engine/messages.py`): those who are named, and admins. */
export function mayDecide(session: Session | null, approval: Pick<OpenApproval, "roles">): boolean {
  if (session === null || !may(session, "start")) return false;
  return approval.roles.length === 0 || session.role === "admin" || approval.roles.includes(session.role);
}

export const keyOf = (approval: OpenApproval): string =>
  `${approval.runId}/${approval.scopePath ?? ""}/${approval.nodeId}`;

export interface Sorted {
  readonly mine: readonly OpenApproval[];
  readonly others: readonly OpenApproval[];
}

/** Those that a person may decide and those that wait for others. What waits longest comes first. */
export function openFor(session: Session | null, approvals: readonly OpenApproval[]): Sorted {
  const byAge = approvals.toSorted((one, other) => (one.since ?? "").localeCompare(other.since ?? ""));
  return {
    mine: byAge.filter((one) => mayDecide(session, one)),
    others: byAge.filter((one) => !mayDecide(session, one)),
  };
}
