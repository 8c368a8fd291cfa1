/** What those who are logged in may do. The server decides; the app only leaves out what would be refused. */

import type { Session } from "../api/client";

/** As the server groups them (`core/security/policy.py`). */
const RIGHTS = {
  start: ["admin", "operator", "editor"],
  edit: ["admin", "editor"],
  operate: ["admin", "operator"],
  admin: ["admin"],
} as const satisfies Record<string, readonly Session["role"][]>;

export type Right = keyof typeof RIGHTS;

export function may(session: Session | null, right: Right): boolean {
  return session !== null && (RIGHTS[right] as readonly string[]).includes(session.role);
}
