/** Groups: titled frames around steps. Each change is one entry of the history. */

import { groupsOf } from "../model/document";
import { changeGroup, groupNodes, removeGroup } from "../model/edits/canvas";
import { texts } from "../texts";
import { newId } from "./adding";
import { chosen, chosenSteps } from "./selection";
import { documentOf, type EditorSession, isReadOnly } from "./session";

const words = texts.editor;

/** Put a frame around the selected steps, and ask for its name. Groups that are selected, too, become this one. */
export function groupChosen(session: EditorSession): void {
  const nodes = chosenSteps(session).map((node) => node.id);
  if (nodes.length === 0 || isReadOnly(session)) return;
  const id = newId();
  const label = words.newGroup(groupsOf(documentOf(session)).length + 1);
  session.editor.actions.edit(words.did.group, (document) =>
    groupNodes(document, { id, label, nodes, color: "blue" }),
  );
  session.editor.actions.select([id]);
  session.decor.setState({ naming: id });
}

/** The groups that are selected, or that a selected step is in. */
export function groupsOfChosen(session: EditorSession): readonly string[] {
  const { nodes, groups } = chosen(session);
  if (groups.length > 0) return groups.map((group) => group.id);
  const ids = new Set(nodes.map((node) => node.id));
  return groupsOf(documentOf(session))
    .filter((group) => group.nodes.some((id) => ids.has(id)))
    .map((group) => group.id);
}

/** Take the frames away. Their steps stay, and are selected. */
export function ungroupChosen(session: EditorSession): void {
  const ids = new Set(groupsOfChosen(session));
  if (ids.size === 0 || isReadOnly(session)) return;
  const steps = groupsOf(documentOf(session)).flatMap((group) => (ids.has(group.id) ? group.nodes : []));
  session.editor.actions.edit(words.did.ungroup, (document) =>
    [...ids].reduce((edited, id) => removeGroup(edited, id), document),
  );
  session.editor.actions.select(steps);
}

export function colorGroup(session: EditorSession, id: string, color: string): void {
  session.editor.actions.edit(words.did.colorGroup, (document) => changeGroup(document, id, { color }));
}
