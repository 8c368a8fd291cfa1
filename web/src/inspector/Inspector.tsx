import { useMemo } from "react";
import { edgeId } from "../canvas/flow";
import type { NodeCatalog } from "../model/catalog";
import { edgesOf, groupsOf, nodesOf, notesOf } from "../model/document";
import type { Problem } from "../model/validation/problems";
import { useDocument, useEditor } from "../stores/editor";
import { InspectorContext, type InspectorHost } from "./context";
import { EdgeInspector } from "./EdgeInspector";
import { GroupInspector } from "./GroupInspector";
import classes from "./inspector.module.css";
import { ManyInspector } from "./ManyInspector";
import { NoteInspector } from "./NoteInspector";
import { StepInspector } from "./StepInspector";
import { useLastRun } from "./useLastRun";
import { WorkflowInspector } from "./WorkflowInspector";

export { flushFields } from "../forms/useDraft";
export { focusField } from "./focus";

interface InspectorProps {
  readonly catalog: NodeCatalog;
  readonly problems: readonly Problem[];
  /** The run that previews and results are read from. */
  readonly lastRunId?: string | null | undefined;
}

/** What is selected, with all that can be set about it; the workflow itself if nothing is. */
export function Inspector({ catalog, problems, lastRunId = null }: InspectorProps) {
  const isReadOnly = useEditor((state) => state.isReadOnly);
  const lastRun = useLastRun(lastRunId);
  const host = useMemo<InspectorHost>(
    () => ({ catalog, problems, lastRunId, lastRun, isReadOnly }),
    [catalog, problems, lastRunId, lastRun, isReadOnly],
  );
  return (
    <InspectorContext value={host}>
      <div className={classes.inspector}>
        <Selected />
      </div>
    </InspectorContext>
  );
}

function Selected() {
  const document = useDocument();
  const selection = useEditor((state) => state.selection);
  if (selection.size > 1) return <ManyInspector ids={selection} />;
  const [id] = selection;
  if (id === undefined) return <WorkflowInspector />;
  // Another thing is another form: what was typed for one never goes to the next.
  if (nodesOf(document).some((node) => node.id === id)) return <StepInspector key={id} id={id} />;
  if (notesOf(document).some((note) => note.id === id)) return <NoteInspector key={id} id={id} />;
  if (groupsOf(document).some((group) => group.id === id)) return <GroupInspector key={id} id={id} />;
  const edge = edgesOf(document).findIndex((one) => edgeId(one) === id);
  return edge < 0 ? <WorkflowInspector /> : <EdgeInspector key={id} place={edge} />;
}
