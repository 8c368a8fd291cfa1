/** Who is logged in. */

import { useQuery } from "@tanstack/react-query";
import { readSession, type Session } from "../api/client";
import { may, type Right } from "./rights";

export const sessionQuery = {
  queryKey: ["session"],
  queryFn: readSession,
  staleTime: Number.POSITIVE_INFINITY,
} as const;

/** Whoever is logged in. Below `SessionGate` somebody is. */
export function useSession(): Session | null {
  return useQuery(sessionQuery).data ?? null;
}

export function useMay(right: Right): boolean {
  return may(useSession(), right);
}
