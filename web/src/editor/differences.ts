/** What differs between two documents: by the ids of steps and the ends of edges. */

import type { Difference } from "../canvas/decor";
import { edgeId } from "../canvas/flow";
import { EDITOR_KEY, type NodeDefinition } from "../model/definition";
import { appendAt, edgesOf, nodesOf, valueAt, type WorkflowDocument } from "../model/document";
import { isParent, type Json, type JsonFields, nodeAt } from "../model/json/tree";

export interface FieldChange {
  readonly field: string;
  readonly before: Json | undefined;
  readonly after: Json | undefined;
}

export interface StepChange {
  readonly id: string;
  readonly label: string;
  readonly kind: Difference;
  readonly fields: readonly FieldChange[];
}

export interface Differences {
  readonly steps: readonly StepChange[];
  /** By the ids of the canvas. */
  readonly edges: ReadonlyMap<string, Difference>;
  /** What is beside steps and edges: inputs, outputs, triggers, name. */
  readonly settings: readonly FieldChange[];
  /** What is only on the canvas differs. */
  readonly hasOtherNotes: boolean;
  readonly isEqual: boolean;
}

const isFields = (value: Json | undefined): value is JsonFields =>
  value !== null && typeof value === "object" && !Array.isArray(value);

function changesBetween(before: Json | undefined, after: Json | undefined, field: string): FieldChange[] {
  if (isFields(before) && isFields(after)) {
    const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
    return [...keys].flatMap((key) =>
      changesBetween(before[key], after[key], field === "" ? key : `${field}.${key}`),
    );
  }
  return JSON.stringify(before) === JSON.stringify(after) ? [] : [{ field, before, after }];
}

const labelOf = (node: NodeDefinition): string => node.label ?? node.type;
const POSITION = /^position(\.|$)/;

export function differencesOf(before: WorkflowDocument, after: WorkflowDocument): Differences {
  const old = new Map(nodesOf(before).map((node) => [node.id, node]));
  const steps: StepChange[] = [];
  for (const node of nodesOf(after)) {
    const known = old.get(node.id);
    old.delete(node.id);
    if (known === undefined) {
      steps.push({ id: node.id, label: labelOf(node), kind: "added", fields: [] });
      continue;
    }
    const all = changesBetween(known as unknown as Json, node as unknown as Json, "");
    const fields = all.filter((change) => !POSITION.test(change.field));
    if (all.length > 0)
      steps.push({
        id: node.id,
        label: labelOf(node),
        kind: fields.length > 0 ? "changed" : "moved",
        fields,
      });
  }
  for (const node of old.values())
    steps.push({ id: node.id, label: labelOf(node), kind: "removed", fields: [] });
  const edges = edgesBetween(before, after);
  const settings = changesBetween(rest(before), rest(after), "");
  const hasOtherNotes =
    changesBetween(valueAt(before, [EDITOR_KEY]), valueAt(after, [EDITOR_KEY]), "").length > 0;
  const count = steps.length + edges.size + settings.length;
  return { steps, edges, settings, hasOtherNotes, isEqual: count === 0 && !hasOtherNotes };
}

function edgesBetween(before: WorkflowDocument, after: WorkflowDocument): Map<string, Difference> {
  const old = new Map(edgesOf(before).map((edge) => [edgeId(edge), edge]));
  const found = new Map<string, Difference>();
  for (const edge of edgesOf(after)) {
    const known = old.get(edgeId(edge));
    old.delete(edgeId(edge));
    if (known === undefined) found.set(edgeId(edge), "added");
    else if (JSON.stringify(known) !== JSON.stringify(edge)) found.set(edgeId(edge), "changed");
  }
  for (const id of old.keys()) found.set(id, "removed");
  return found;
}

function rest(document: WorkflowDocument): JsonFields {
  const root = valueAt(document, []);
  if (!isFields(root)) return {};
  const { nodes: _, edges: __, [EDITOR_KEY]: ___, ...others } = root;
  return others;
}

/** One document that has what is in either, to draw the difference: what was removed stands where it stood. */
export function unionOf(before: WorkflowDocument, after: WorkflowDocument): WorkflowDocument {
  let union = after;
  const present = new Set(nodesOf(after).map((node) => node.id));
  const wires = new Set(edgesOf(after).map(edgeId));
  const add = (list: "nodes" | "edges", isMeant: (place: number) => boolean): void => {
    const found = nodeAt(before.root, [list]);
    if (!isParent(found)) return;
    found.children.forEach((child, place) => {
      if (isMeant(place)) union = appendAt(union, [list], { node: child.value });
    });
  };
  const [nodes, edges] = [nodesOf(before), edgesOf(before)];
  add("nodes", (place) => !present.has(nodes[place]?.id ?? ""));
  add("edges", (place) => {
    const edge = edges[place];
    return edge !== undefined && !wires.has(edgeId(edge));
  });
  return union;
}
