import { expect, test } from "vitest";
import type { Session } from "../src/api/client";
import { keyOf, mayDecide, type OpenApproval, openFor } from "../src/runview/approvals";

const as = (role: Session["role"]): Session => ({ role }) as Session;
const open = (nodeId: string, since: string | null, roles: string[] = []): OpenApproval => ({
  runId: "run",
  nodeId,
  label: nodeId,
  message: "",
  roles,
  since,
});

test("whoever may start runs decides where nobody is named", () => {
  const any = { roles: [] };
  expect(mayDecide(as("editor"), any)).toBe(true);
  expect(mayDecide(as("operator"), any)).toBe(true);
  expect(mayDecide(as("viewer"), any)).toBe(false);
  expect(mayDecide(null, any)).toBe(false);
});

test("those who are named decide, and admins", () => {
  const named = { roles: ["operator", "viewer"] };
  expect(mayDecide(as("operator"), named)).toBe(true);
  expect(mayDecide(as("admin"), named)).toBe(true);
  expect(mayDecide(as("editor"), named)).toBe(false);
  // A viewer may not even call the route.
  expect(mayDecide(as("viewer"), named)).toBe(false);
});

test("one's own and those of others are apart, what waits longest first", () => {
  const late = open("late", "2026-01-15T10:00:05Z");
  const early = open("early", "2026-01-15T10:00:01Z");
  const closed = open("closed", "2026-01-15T10:00:03Z", ["operator"]);
  const { mine, others } = openFor(as("editor"), [late, closed, early]);
  expect(mine).toEqual([early, late]);
  expect(others).toEqual([closed]);
});

test("the same step in two items of a map is two decisions", () => {
  const one = { ...open("ask", null), scopePath: "map:0" };
  const other = { ...open("ask", null), scopePath: "map:1" };
  expect(keyOf(one)).not.toBe(keyOf(other));
});
