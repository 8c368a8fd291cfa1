import { edgeId } from "../canvas/flow";
import { edgesOf, groupsOf, nodesOf, notesOf, type WorkflowDocument } from "../model/document";
import { removeGroup, removeNote } from "../model/edits/canvas";
import { disconnect } from "../model/edits/edges";
import { removeNodes } from "../model/edits/nodes";

/** Remove nodes, notes and edges by the ids that they have on the canvas. */
export function withoutAll(document: WorkflowDocument, ids: ReadonlySet<string>): WorkflowDocument {
  // Edges first: the removal of a node takes its edges along, and with them their places.
  const wires = edgesOf(document).flatMap((edge, place) => (ids.has(edgeId(edge)) ? [place] : []));
  let edited = disconnect(document, new Set(wires));
  edited = removeNodes(
    edited,
    nodesOf(edited).flatMap((node) => (ids.has(node.id) ? [node.id] : [])),
  );
  for (const note of notesOf(edited)) if (ids.has(note.id)) edited = removeNote(edited, note.id);
  for (const group of groupsOf(edited)) if (ids.has(group.id)) edited = removeGroup(edited, group.id);
  return edited;
}
