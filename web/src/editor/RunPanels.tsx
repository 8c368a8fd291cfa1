import { type ReactNode, useCallback, useMemo, useState } from "react";
import { useRunDocument } from "../api/workflows";
import { nodesOf } from "../model/document";
import { LogsPanel } from "../runview/logs/LogsPanel";
import { useNodeDetail } from "../runview/queries";
import { DefinitionProvider, defineRun, PlaceProvider } from "../runview/runPage";
import type { RunSearch } from "../runview/search";
import { TimelineTab } from "../runview/TimelineTab";
import { useDocument, useEditor, useEditorStore } from "../stores/editor";
import { useStep } from "../stores/run";
import { texts } from "../texts";
import { ValueView } from "../values/ValueView";
import type { DockTabProps } from "./dockTabs";
import classes from "./editor.module.css";

const words = texts.editor.dock;

const Hint = ({ text }: { readonly text: string }) => <p className={classes.dockHint}>{text}</p>;

/** The one step that is selected. */
function useChosen(): string | undefined {
  const selection = useEditor((state) => state.selection);
  const document = useDocument();
  const [id] = selection;
  return selection.size === 1 && nodesOf(document).some((node) => node.id === id) ? id : undefined;
}

/** The panels of a run page, for the run on the canvas and the step that is selected. */
function RunPlace({ runId, catalog, children }: DockTabProps & { readonly children: ReactNode }) {
  const { actions } = useEditorStore();
  const document = useRunDocument(runId ?? "").data;
  const definition = useMemo(
    () => (document === undefined ? null : defineRun(document, catalog)),
    [document, catalog],
  );
  const step = useChosen();
  const [rest, setRest] = useState<RunSearch>({});
  const set = useCallback(
    ({ step: next, ...change }: RunSearch) => {
      if (next !== undefined) actions.select([next]);
      setRest((before) => ({ ...before, ...change }));
    },
    [actions],
  );
  const place = useMemo(
    () => ({ runId: runId ?? "", search: { ...rest, ...(step === undefined ? {} : { step }) }, set }),
    [runId, rest, step, set],
  );
  if (definition === null) return null;
  return (
    <DefinitionProvider value={definition}>
      <PlaceProvider value={place}>{children}</PlaceProvider>
    </DefinitionProvider>
  );
}

export function LogsDock(props: DockTabProps) {
  if (props.runId === null) return <Hint text={words.noRun} />;
  return (
    <RunPlace {...props}>
      <LogsPanel isOpen onToggle={props.onClose} />
    </RunPlace>
  );
}

export function TimelineDock(props: DockTabProps) {
  if (props.runId === null) return <Hint text={words.noRun} />;
  return (
    <RunPlace {...props}>
      <TimelineTab />
    </RunPlace>
  );
}

/** What the selected step was given, or what it gave, in the run on the canvas. */
function StepData({ runId, side }: { readonly runId: string | null; readonly side: "input" | "output" }) {
  const step = useChosen();
  if (runId === null) return <Hint text={words.noRun} />;
  if (step === undefined) return <Hint text={words.noStep} />;
  return <Data key={step} runId={runId} nodeId={step} side={side} />;
}

function Data({
  runId,
  nodeId,
  side,
}: {
  readonly runId: string;
  readonly nodeId: string;
  readonly side: "input" | "output";
}) {
  const ran = useStep(nodeId);
  const { data } = useNodeDetail(runId, nodeId, undefined, `${ran?.status ?? ""} ${ran?.attempt ?? 0}`);
  const value = side === "input" ? data?.parameters : (data?.result ?? data?.error);
  if (value == null) return <Hint text={side === "input" ? words.noInput : words.noOutput} />;
  return (
    <div className={classes.dockData}>
      <ValueView value={value} />
    </div>
  );
}

export const InputDock = ({ runId }: DockTabProps) => <StepData runId={runId} side="input" />;
export const OutputDock = ({ runId }: DockTabProps) => <StepData runId={runId} side="output" />;
