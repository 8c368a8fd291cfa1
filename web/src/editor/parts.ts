/** Whole documents made from others: the part up to a step, a copy with ids of its own, an empty one. */

import { CONTAINER_TYPE } from "../model/definition";
import { nodesOf, openDocument, textOf, valueAt, type WorkflowDocument } from "../model/document";
import { removeNodes } from "../model/edits/nodes";
import { USUAL_SIZE } from "../model/sizes";
import { reachOf } from "./walking";

/**
 * What has to run so that these steps have run: everything upstream, with the containers that they are in and the
 * middlewares around them. Steps that undo one of them stay, too.
 */
export function documentUpTo(document: WorkflowDocument, ids: Iterable<string>): WorkflowDocument {
  const nodes = nodesOf(document);
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const outermost = (id: string): string => {
    const seen = new Set<string>();
    let at = id;
    for (
      let parent = byId.get(at)?.parent;
      parent != null && !seen.has(parent);
      parent = byId.get(at)?.parent
    ) {
      seen.add(parent);
      at = parent;
    }
    return at;
  };
  const hosts = new Map(
    nodes.flatMap((node) => (node.middlewares ?? []).map((one) => [one, node.id] as const)),
  );
  const wanted = [...ids].map((id) => outermost(hosts.get(id) ?? id));
  let kept = reachOf(document, wanted, "upstream");
  for (let size = -1; size !== kept.size; ) {
    size = kept.size;
    for (const node of nodes) {
      const isInside = node.parent != null && kept.has(node.parent);
      if (isInside) kept.add(node.id);
      if (!kept.has(node.id)) continue;
      for (const one of node.middlewares ?? []) kept.add(one);
      for (const undo of [node.onFailure, node.onCancel])
        if (undo != null) kept = new Set([...kept, ...reachOf(document, [undo], "downstream")]);
    }
  }
  return removeNodes(
    document,
    nodes.map((node) => node.id).filter((id) => !kept.has(id)),
  );
}

const UUID = /[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}/g;

/** A copy: the workflow and its nodes get new ids wherever they are named; all other bytes stay. */
export function withNewIds(
  text: string,
  newId: () => string,
): { readonly id: string; readonly text: string } {
  const document = openDocument(text);
  const id = newId();
  const fresh = new Map<string, string>();
  const own = valueAt(document, ["id"]);
  if (typeof own === "string") fresh.set(own, id);
  for (const node of nodesOf(document)) fresh.set(node.id, newId());
  return { id, text: textOf(document).replace(UUID, (known) => fresh.get(known) ?? known) };
}

export function emptyText(id: string, name: string): string {
  return `${JSON.stringify({ id, metadata: { name }, nodes: [], edges: [] }, null, 2)}\n`;
}

export function nameOf(document: WorkflowDocument): string {
  const name = valueAt(document, ["metadata", "name"]);
  return typeof name === "string" ? name : "";
}

/** Whether steps are drawn over each other: files that were written for other pictures stand too close. */
export function isCrowded(document: WorkflowDocument): boolean {
  const wrapping = new Set(nodesOf(document).flatMap((node) => node.middlewares ?? []));
  const drawn = nodesOf(document).filter((node) => !wrapping.has(node.id) && node.type !== CONTAINER_TYPE);
  const at = drawn.map((node) => node.position ?? { x: 0, y: 0 });
  return at.some((one, place) =>
    at
      .slice(place + 1)
      .some(
        (other) =>
          Math.abs(one.x - other.x) < USUAL_SIZE.width + 16 && Math.abs(one.y - other.y) < USUAL_SIZE.height,
      ),
  );
}
