/** Edits of what is only on the canvas: notes and groups. The scheduler keeps them and does not read them. */

import { type CanvasGroup, type CanvasNote, EDITOR_KEY } from "../definition";
import {
  appendAt,
  EditError,
  groupsOf,
  notesOf,
  removeAt,
  removeWhere,
  setAt,
  valueAt,
  type WorkflowDocument,
} from "../document";
import type { Json, JsonFields } from "../json/tree";

type Kind = "notes" | "groups";

function placeIn(items: readonly { readonly id: string }[], id: string): number {
  const place = items.findIndex((item) => item.id === id);
  if (place < 0) throw new EditError(`there is nothing with this id on the canvas: ${id}`);
  return place;
}

export function addNote(document: WorkflowDocument, note: CanvasNote): WorkflowDocument {
  return appendAt(document, [EDITOR_KEY, "notes"], { value: note as unknown as Json });
}

export function changeNote(
  document: WorkflowDocument,
  id: string,
  change: Partial<CanvasNote>,
): WorkflowDocument {
  return changed(document, "notes", placeIn(notesOf(document), id), change as JsonFields);
}

export function removeNote(document: WorkflowDocument, id: string): WorkflowDocument {
  return removed(document, "notes", placeIn(notesOf(document), id));
}

export function addGroup(document: WorkflowDocument, group: CanvasGroup): WorkflowDocument {
  return appendAt(document, [EDITOR_KEY, "groups"], { value: group as unknown as Json });
}

export function changeGroup(
  document: WorkflowDocument,
  id: string,
  change: Partial<CanvasGroup>,
): WorkflowDocument {
  return changed(document, "groups", placeIn(groupsOf(document), id), change as unknown as JsonFields);
}

/** A frame around these nodes. A node is in one group at most: those that it was in before lose it. */
export function groupNodes(document: WorkflowDocument, group: CanvasGroup): WorkflowDocument {
  return addGroup(leaveGroups(document, new Set(group.nodes)), group);
}

/** Take nodes out of their groups. A group that has none left goes. */
export function leaveGroups(document: WorkflowDocument, ids: ReadonlySet<string>): WorkflowDocument {
  let edited = document;
  for (const { id, nodes } of groupsOf(document)) {
    if (!nodes.some((node) => ids.has(node))) continue;
    edited = nodes.every((node) => ids.has(node))
      ? removeGroup(edited, id)
      : removeWhere<string>(edited, [EDITOR_KEY, "groups", placeIn(groupsOf(edited), id), "nodes"], (node) =>
          ids.has(node),
        );
  }
  return edited;
}

export function removeGroup(document: WorkflowDocument, id: string): WorkflowDocument {
  return removed(document, "groups", placeIn(groupsOf(document), id));
}

function changed(
  document: WorkflowDocument,
  kind: Kind,
  place: number,
  change: JsonFields,
): WorkflowDocument {
  let edited = document;
  for (const [field, value] of Object.entries(change)) {
    edited = setAt(edited, [EDITOR_KEY, kind, place, field], value as Json);
  }
  return edited;
}

/** With the last one goes what held it, so that a note that came and went leaves no trace. */
function removed(document: WorkflowDocument, kind: Kind, place: number): WorkflowDocument {
  let edited = removeAt(document, [EDITOR_KEY, kind, place]);
  if (valueAt(edited, [EDITOR_KEY, kind, 0]) === undefined) edited = removeAt(edited, [EDITOR_KEY, kind]);
  const left = valueAt(edited, [EDITOR_KEY]);
  return left !== undefined && Object.keys(left as object).length === 0
    ? removeAt(edited, [EDITOR_KEY])
    : edited;
}
