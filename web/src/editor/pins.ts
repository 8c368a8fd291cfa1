/** Pinned results: a run of the editor takes them in the place of running the step. */

import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { texts } from "../texts";
import { listPins, pinResult, unpinResult } from "./requests";
import { messageOf } from "./running";
import { chosenStep } from "./selection";
import { type EditorSession, notify } from "./session";

export function usePins(session: EditorSession, isSaved: boolean): void {
  const { data } = useQuery({
    // Events of workflows fetch it anew.
    queryKey: ["workflows", session.workflowId, "pins"],
    queryFn: () => listPins(session.workflowId),
    enabled: isSaved,
  });
  useEffect(() => {
    if (data !== undefined) session.decor.setState({ pins: data });
  }, [session, data]);
}

async function change(session: EditorSession, nodeId: string, isPinned: boolean): Promise<void> {
  const { runId } = session.ui.getState();
  try {
    if (isPinned) await unpinResult(session.workflowId, nodeId);
    else if (runId !== null) await pinResult(session.workflowId, nodeId, runId);
    session.decor.setState({ pins: await listPins(session.workflowId) });
  } catch (error) {
    notify(session, messageOf(error), "error");
  }
}

/** What a menu offers for the selected step: pin what it gave in the run that is shown, or unpin it. */
export function pinItems(session: EditorSession): readonly { label: string; run: () => void }[] {
  const step = chosenStep(session);
  if (step === null || !session.mayEdit) return [];
  const isPinned = session.decor.getState().pins.has(step.id);
  if (!isPinned && session.ui.getState().runId === null) return [];
  const label = isPinned ? texts.editor.commands.unpin : texts.editor.commands.pin;
  return [{ label, run: () => void change(session, step.id, isPinned) }];
}
