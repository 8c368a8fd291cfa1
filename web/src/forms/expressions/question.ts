/** What the scheduler is asked about an expression that the browser cannot evaluate, and what its answer shows. */

import type { components } from "../../api/schema";
import { nodesOf, type WorkflowDocument } from "../../model/document";
import type { Json, JsonFields } from "../../model/json/tree";
import { texts } from "../../texts";
import type { Preview } from "../host";
import { type LastRun, nameOfNode, type ScopeOptions } from "./names";

export interface Question extends Omit<components["schemas"]["EvaluateRequest"], "names"> {
  readonly names?: JsonFields;
}

type Answer = components["schemas"]["Evaluation"];

const MAX_NAMES = 1_000;

/** Null if there is nothing to read from. */
export function questionOf(
  expression: string,
  document: WorkflowDocument,
  run: LastRun | null,
  { node, edge }: ScopeOptions,
): Question | null {
  if (run === null) return null;
  const source = edge === undefined ? undefined : run.steps.get(edge.source.node);
  // The condition of an edge reads the result of its source, which may be too large to be here.
  const results = source?.results;
  if (edge !== undefined && results === undefined) return null;
  // The document may have been edited since the run: its names are those that the expression means.
  const named = nodesOf(document)
    .map((one) => [nameOfNode(document, one), one.id] as const)
    .filter(([name, id]) => name !== id && expression.includes(name));
  return {
    expression,
    runId: run.id,
    nodeId: node,
    nodes: Object.fromEntries(named.slice(0, MAX_NAMES)),
    ...(results === undefined ? {} : { names: { results, error: source?.error ?? null } }),
  };
}

export function previewFrom(answer: Answer): Preview {
  if (answer.error != null) return { kind: "missing", reason: answer.error.message };
  if (answer.valueTruncated === true) return { kind: "missing", reason: texts.forms.preview.tooLarge };
  return { kind: "value", value: answer.value as Json };
}
