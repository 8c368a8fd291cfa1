/** Where on the canvas a problem is: its pointer in terms of steps, fields and edges. */

import { edgeId } from "../canvas/flow";
import { edgesOf, nodesOf, type WorkflowDocument } from "../model/document";
import type { Problem } from "../model/validation/problems";

export type Severity = "error" | "warning";

export interface FoundProblem extends Problem {
  readonly severity: Severity;
}

export interface ProblemPlace {
  /** The step or the edge to select. */
  readonly id: string | null;
  readonly label: string | null;
  /** Below the step, with dots. */
  readonly field: string | null;
}

const unescaped = (token: string): string => token.replaceAll("~1", "/").replaceAll("~0", "~");

export function placeOf(problem: Problem, document: WorkflowDocument): ProblemPlace {
  const [list, place, ...rest] = problem.pointer.split("/").slice(1).map(unescaped);
  if (list === "nodes" && place !== undefined) {
    const node = nodesOf(document)[Number(place)];
    const field = rest.length === 0 ? null : rest.join(".");
    return { id: node?.id ?? null, label: node === undefined ? null : (node.label ?? node.type), field };
  }
  if (list === "edges" && place !== undefined) {
    const edge = edgesOf(document)[Number(place)];
    if (edge === undefined) return { id: null, label: null, field: null };
    const name = (id: string): string => {
      const node = nodesOf(document).find((one) => one.id === id);
      return node?.label ?? node?.type ?? id.slice(0, 8);
    };
    return {
      id: edgeId(edge),
      label: `${name(edge.source.node)} → ${name(edge.target.node)}`,
      field: rest.length === 0 ? null : rest.join("."),
    };
  }
  const path = [list, place, ...rest].filter((token) => token !== undefined && token !== "");
  return { id: null, label: null, field: path.length === 0 ? null : path.join(".") };
}

/** How many errors each step has. Warnings are no reason to mark a step. */
export function countByNode(
  problems: readonly FoundProblem[],
  document: WorkflowDocument,
): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const problem of problems) {
    if (problem.severity !== "error") continue;
    const ids = problem.members ?? [placeOf(problem, document).id];
    for (const id of ids) if (id !== null) counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
}

/** What the browser found and what the scheduler found, each once. */
export function joined(mine: readonly Problem[], server: readonly FoundProblem[]): readonly FoundProblem[] {
  const seen = new Set<string>();
  const all: FoundProblem[] = [];
  for (const one of [...mine.map((each) => ({ ...each, severity: "error" as const })), ...server]) {
    const key = `${one.pointer} ${one.code}`;
    if (seen.has(key)) continue;
    seen.add(key);
    all.push(one);
  }
  return all;
}
