import { useMediaQuery } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import { createPortal } from "react-dom";
import { useStore } from "zustand";
import type { NodeCatalog } from "../model/catalog";
import { isDrawable } from "../model/document";
import { EditorContext } from "../stores/editor";
import { RunProvider } from "../stores/run";
import { tick } from "../tour/tour";
import { comparedStates, type EditorSearch } from "./address";
import { ReadOnlyBanner, SaveBanner } from "./Banners";
import { CanvasMenu } from "./CanvasMenu";
import { Comparison } from "./Comparison";
import { Dialogs } from "./Dialogs";
import classes from "./editor.module.css";
import { useKeys } from "./keys";
import { useLayout } from "./layout";
import { NoticeLine } from "./NoticeLine";
import type { Opening } from "./opening";
import { usePins } from "./pins";
import { QuickAddPopup } from "./QuickAdd";
import { Regions } from "./Regions";
import { lastRunOf } from "./requests";
import { openDock, SessionContext } from "./session";
import { TextView } from "./TextView";
import { Toolbar } from "./Toolbar";
import { useAddress } from "./useAddress";
import { useEdited } from "./useEdited";
import { useEditorSession } from "./useEditorSession";
import { useProblems } from "./useProblems";

interface Props {
  readonly workflowId: string;
  readonly opening: Opening;
  readonly catalog: NodeCatalog;
  readonly search: EditorSearch;
  readonly mayEdit: boolean;
  readonly mayRun: boolean;
}

const NARROW = "(max-width: 699px)";

/** A workflow that is open: the toolbar, the regions, and what is in front of them. */
export function EditorShell({ workflowId, opening, catalog, search, mayEdit, mayRun }: Props) {
  const isFixed = search.version !== undefined || !mayEdit;
  const isNarrow = useMediaQuery(NARROW, false, { getInitialValueInEffect: false });
  const { session, reload, overwrite } = useEditorSession({
    workflowId,
    opening,
    catalog,
    isReadOnly: isFixed,
    mayEdit,
    mayRun,
  });
  useEffect(() => tick("open"), []);
  useEffect(() => session.editor.setState({ isReadOnly: isFixed || isNarrow }), [session, isFixed, isNarrow]);
  const navigate = useNavigate();
  const control = useLayout();
  useKeys(session);
  useProblems(session, catalog);
  useEdited(session);
  useAddress(session, search);
  const runId = useStore(session.ui, (state) => state.runId);
  const saveKind = useStore(session.ui, (state) => state.save.kind);
  const isKnown = opening.revision + opening.version > 0 || saveKind === "saved";
  usePins(session, isKnown);
  const isDrawn = useStore(session.editor, (state) => isDrawable(state.history.present));
  const isText = useStore(session.ui, (state) => state.asText) || !isDrawn;
  const lastRun = useQuery({
    queryKey: ["runs", "last", workflowId],
    queryFn: () => lastRunOf(workflowId),
    enabled: isKnown,
  });
  const compare = (states: string | null): void =>
    void navigate({
      to: ".",
      search: ({ compare: _, ...rest }: EditorSearch): EditorSearch =>
        states === null ? rest : { ...rest, compare: states },
    });
  const compared = comparedStates(search.compare ?? "");
  const slot = document.getElementById("top-slot");
  return (
    <SessionContext value={session}>
      <EditorContext value={session.editor}>
        <RunProvider runId={runId}>
          {slot !== null && createPortal(<Toolbar onProblems={() => openDock(session, "problems")} />, slot)}
          <div className={classes.editor}>
            {(isFixed || isNarrow) && (
              <ReadOnlyBanner
                version={search.version}
                reason={search.version !== undefined ? "version" : mayEdit ? "narrow" : "viewer"}
              />
            )}
            <SaveBanner
              onCompare={() => compare("saved..mine")}
              onOverwrite={() => void overwrite()}
              onReload={() => void reload()}
            />
            {compared === null && isText ? (
              <TextView />
            ) : compared === null ? (
              <Regions catalog={catalog} control={control} lastRunId={runId ?? lastRun.data ?? null} />
            ) : (
              <Comparison states={compared} catalog={catalog} onClose={() => compare(null)} />
            )}
          </div>
          <QuickAddPopup />
          <CanvasMenu />
          <Dialogs onCompare={(from, to) => compare(`${from}..${to}`)} />
          <NoticeLine />
        </RunProvider>
      </EditorContext>
    </SessionContext>
  );
}
