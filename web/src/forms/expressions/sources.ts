/** Values of the last run that the expressions of a step can name, and how one comes into a field. */

import { create } from "zustand";
import type { WorkflowDocument } from "../../model/document";
import type { Json, JsonFields } from "../../model/json/tree";
import { isExpression } from "../values";
import { type LastRun, nameOfNode, upstreamOf } from "./names";

/** What a drag of such a value carries, beside its text. */
export const EXPRESSION_DATA = "application/x-astraflow-expression";

/** The inputs of the run and the results of all steps before this one, by the names that expressions call them. */
export function usableValues(document: WorkflowDocument, run: LastRun, id: string): JsonFields {
  const nodes: Record<string, Json> = {};
  for (const node of upstreamOf(document, id)) {
    const results = run.steps.get(node.id)?.results;
    if (results !== undefined) nodes[nameOfNode(document, node)] = { results };
  }
  const inputs = run.inputs ?? {};
  return {
    ...(Object.keys(inputs as object).length > 0 ? { inputs } : {}),
    ...(Object.keys(nodes).length > 0 ? { nodes } : {}),
  };
}

/** A field with a value of another step in it: at the end of its expression, or in the place of what is there. */
export function withReference(value: Json | undefined, path: string): string {
  const expression = isExpression(value) ? value.slice(1).trimEnd() : "";
  return expression === "" ? `=${path}` : `=${expression} ${path}`;
}

/** A field that takes values. */
export interface TakingField {
  readonly id: string;
  readonly label: string;
  readonly take: (path: string) => void;
}

/** The field that had the focus last: those who use no pointer insert values there. */
export const useLastField = create<{ readonly field: TakingField | null }>(() => ({ field: null }));

export function forgetField(id: string): void {
  if (useLastField.getState().field?.id === id) useLastField.setState({ field: null });
}
