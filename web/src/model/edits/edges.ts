/** Edits of edges. */

import type { EdgeDefinition, EdgeEnd } from "../definition";
import { appendAt, edgesOf, removeAt, removeWhere, setAt, type WorkflowDocument } from "../document";
import type { JsonFields } from "../json/tree";

export interface NewEdge {
  readonly id?: string;
  readonly source: EdgeEnd;
  readonly target: EdgeEnd;
  readonly when?: string;
}

const endOf = (end: EdgeEnd): JsonFields => ({ node: end.node, ...(end.port ? { port: end.port } : {}) });

export const isSameEnd = (one: EdgeEnd, other: EdgeEnd, usual: string): boolean =>
  one.node === other.node && (one.port ?? usual) === (other.port ?? usual);

/** Add an edge. One that is there already is not added again; with `replaces` those into the same port are removed. */
export function connect(
  document: WorkflowDocument,
  edge: NewEdge,
  options: { readonly replaces?: boolean } = {},
): WorkflowDocument {
  const isThere = edgesOf(document).some(
    (known) =>
      isSameEnd(known.source, edge.source, "done") && isSameEnd(known.target, edge.target, "trigger"),
  );
  if (isThere) return document;
  const freed = options.replaces
    ? removeWhere<EdgeDefinition>(document, ["edges"], (known) =>
        isSameEnd(known.target, edge.target, "trigger"),
      )
    : document;
  const value: JsonFields = {
    ...(edge.id ? { id: edge.id } : {}),
    source: endOf(edge.source),
    target: endOf(edge.target),
    ...(edge.when ? { when: edge.when } : {}),
  };
  return appendAt(freed, ["edges"], { value });
}

/** Remove edges by their places in the list. */
export function disconnect(document: WorkflowDocument, places: ReadonlySet<number>): WorkflowDocument {
  return removeWhere<EdgeDefinition>(document, ["edges"], (_, place) => places.has(place));
}

export function setCondition(document: WorkflowDocument, place: number, when: string): WorkflowDocument {
  if (edgesOf(document)[place] === undefined) return document;
  return when === ""
    ? removeAt(document, ["edges", place, "when"])
    : setAt(document, ["edges", place, "when"], when);
}

/** Put a node into the middle of an edge: in comes by `input`, out goes by `output`. */
export function insertOnEdge(
  document: WorkflowDocument,
  place: number,
  node: string,
  ports: { readonly input?: string; readonly output?: string },
): WorkflowDocument {
  const edge = edgesOf(document)[place];
  if (edge === undefined) return document;
  const freed = removeAt(document, ["edges", place]);
  const first = connect(freed, {
    source: edge.source,
    target: { node, ...(ports.input ? { port: ports.input } : {}) },
    ...(edge.when ? { when: edge.when } : {}),
  });
  return connect(first, {
    source: { node, ...(ports.output ? { port: ports.output } : {}) },
    target: edge.target,
  });
}
