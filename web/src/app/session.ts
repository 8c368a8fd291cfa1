/** Who is logged in, and what they may do. The server decides; the app only leaves out what would be refused. */

import { useQuery } from "@tanstack/react-query";
import { readSession, type Session } from "../api/client";

/** As the server groups them (`core/security/policy.py`). */
const RIGHTS = {
  start: ["admin", "operator", "editor"],
  edit: ["admin", "editor"],
  operate: ["admin", "operator"],
  admin: ["admin"],
} as const satisfies Record<string, readonly Session["role"][]>;

export type Right = keyof typeof RIGHTS;

export const sessionQuery = {
  queryKey: ["session"],
  queryFn: readSession,
  staleTime: Number.POSITIVE_INFINITY,
} as const;

/** Whoever is logged in. Below `SessionGate` somebody is. */
export function useSession(): Session | null {
  return useQuery(sessionQuery).data ?? null;
}

export function may(session: Session | null, right: Right): boolean {
  return session !== null && (RIGHTS[right] as readonly string[]).includes(session.role);
}

export function useMay(right: Right): boolean {
  return may(useSession(), right);
}
