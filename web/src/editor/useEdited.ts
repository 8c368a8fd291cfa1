/** Marks the steps that were edited after the run that is shown: their state is that of something else. */

import { useEffect } from "react";
import { nodesOf, type WorkflowDocument } from "../model/document";
import type { EditorSession } from "./session";

const NONE: ReadonlySet<string> = new Set();

/** Steps that are not as they were; where they stand counts for nothing. */
export function editedSince(before: WorkflowDocument | null, now: WorkflowDocument): ReadonlySet<string> {
  if (before === null || before === now) return NONE;
  const known = new Map(nodesOf(before).map((node) => [node.id, node]));
  const found = new Set<string>();
  for (const node of nodesOf(now)) {
    const old = known.get(node.id);
    if (old === undefined || old === node) continue;
    const { position: _, label: __, ...rest } = node;
    const { position: ___, label: ____, ...oldRest } = old;
    if (JSON.stringify(rest) !== JSON.stringify(oldRest)) found.add(node.id);
  }
  return found;
}

export function useEdited(session: EditorSession): void {
  useEffect(() => {
    const mark = (): void => {
      const { runDocument } = session.ui.getState();
      const edited = editedSince(runDocument, session.editor.getState().history.present);
      const { edited: before } = session.decor.getState();
      if (edited.size > 0 || before.size > 0) session.decor.setState({ edited });
    };
    const stops = [
      session.editor.subscribe((state, before) => {
        if (state.history.present !== before.history.present) mark();
      }),
      session.ui.subscribe((state, before) => {
        if (state.runDocument !== before.runDocument) mark();
      }),
    ];
    return () => {
      for (const stop of stops) stop();
    };
  }, [session]);
}
