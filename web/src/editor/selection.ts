/** What is selected, by what it is. */

import { edgeId } from "../canvas/flow";
import type { CanvasGroup, NodeDefinition } from "../model/definition";
import { edgesOf, groupsOf, nodesOf, notesOf } from "../model/document";
import { documentOf, type EditorSession } from "./session";

export interface Chosen {
  readonly nodes: readonly NodeDefinition[];
  readonly notes: readonly string[];
  readonly groups: readonly CanvasGroup[];
  /** Places in the list of edges. */
  readonly edges: ReadonlySet<number>;
}

export function chosen(session: EditorSession): Chosen {
  const { selection } = session.editor.getState();
  const document = documentOf(session);
  const edges = new Set<number>();
  edgesOf(document).forEach((edge, place) => {
    if (selection.has(edgeId(edge))) edges.add(place);
  });
  return {
    nodes: nodesOf(document).filter((node) => selection.has(node.id)),
    notes: notesOf(document)
      .filter((note) => selection.has(note.id))
      .map((note) => note.id),
    groups: groupsOf(document).filter((group) => selection.has(group.id)),
    edges,
  };
}

/** The steps that are selected, by themselves or with their group. */
export function chosenSteps(session: EditorSession): readonly NodeDefinition[] {
  const { nodes, groups } = chosen(session);
  const ids = new Set([...nodes.map((node) => node.id), ...groups.flatMap((group) => group.nodes)]);
  return nodesOf(documentOf(session)).filter((node) => ids.has(node.id));
}

/** The one step that is selected; null if it is none or several. */
export function chosenStep(session: EditorSession): NodeDefinition | null {
  const { nodes } = chosen(session);
  return nodes.length === 1 ? (nodes[0] ?? null) : null;
}
