/** Opens a session, keeps its draft, and tells it what others do with the workflow. */

import { useEffect, useRef, useState } from "react";
import { ApiError } from "../api/client";
import { onTenantEvents, useLive } from "../live/live";
import type { NodeCatalog } from "../model/catalog";
import { openDocument, textOf } from "../model/document";
import { texts } from "../texts";
import { DraftKeeper, type SaveFailure } from "./draftKeeper";
import { browserCopies } from "./localCopies";
import type { Opening } from "./opening";
import { readNewest, saveDraft } from "./requests";
import { createSession, type EditorSession, notify, type Permissions } from "./session";

function failureOf(error: unknown): SaveFailure {
  if (!(error instanceof ApiError)) return { kind: "offline" };
  if (error.status === 409 || error.status === 412) return { kind: "conflict" };
  if (error.status >= 502 || error.status === 0) return { kind: "offline" };
  return { kind: "refused", message: error.message };
}

interface Given extends Permissions {
  readonly workflowId: string;
  readonly opening: Opening;
  readonly catalog: NodeCatalog;
  readonly isReadOnly: boolean;
}

export interface OpenSession {
  readonly session: EditorSession;
  /** Take what the scheduler has; edits that it does not have are given up. */
  readonly reload: () => Promise<void>;
  /** Save what is here over what somebody else has saved. */
  readonly overwrite: () => Promise<void>;
}

interface WorkflowEvent {
  readonly workflowId?: string;
  readonly revision?: number | null;
  readonly version?: number | null;
  readonly by?: string;
}

export function useEditorSession({
  workflowId,
  opening,
  catalog,
  isReadOnly,
  mayEdit,
  mayRun,
}: Given): OpenSession {
  const types = useRef(catalog);
  types.current = catalog;
  const keeper = useRef<DraftKeeper | null>(null);
  /** The document is being replaced: that is no edit. */
  const isReplacing = useRef(false);
  const [session] = useState(() =>
    createSession({
      workflowId,
      openedVersion: opening.revision === 0 && opening.version > 0 ? opening.version : null,
      document: openDocument(opening.text),
      isReadOnly,
      mayEdit,
      mayRun,
      catalog: () => types.current,
      keeper: () => keeper.current,
    }),
  );
  const [actions] = useState(() => {
    const keep = (revision: number, version: number): DraftKeeper =>
      new DraftKeeper({
        workflowId,
        revision,
        version,
        save: (text, before) => saveDraft(workflowId, text, before),
        failureOf,
        copies: browserCopies,
        now: () => Date.now(),
        wait: (run, milliseconds) => {
          const timer = setTimeout(run, milliseconds);
          return () => clearTimeout(timer);
        },
        onState: (save) => session.ui.setState({ save }),
        onStale: () => void replace(),
      });
    const replace = async (by = ""): Promise<void> => {
      const newest = await readNewest(workflowId);
      if (newest === null) return;
      keeper.current?.close();
      keeper.current = keep(newest.revision, newest.version);
      isReplacing.current = true;
      session.editor.actions.open(openDocument(newest.text), false);
      isReplacing.current = false;
      session.ui.setState({ save: { kind: "clean" } });
      notify(session, texts.editor.notices.reloaded(by || (newest.savedBy ?? "")));
    };
    const reload = async (): Promise<void> => {
      await keeper.current?.drop();
      await replace();
    };
    const overwrite = async (): Promise<void> => {
      const newest = await readNewest(workflowId);
      keeper.current?.change(textOf(session.editor.getState().history.present));
      await keeper.current?.overwrite(newest?.revision ?? 0, newest?.version ?? 0);
    };
    return { keep, reload, overwrite };
  });
  useEffect(() => {
    if (isReadOnly) return;
    const own = actions.keep(opening.revision, opening.version);
    keeper.current = own;
    if (opening.isRestored) {
      own.change(opening.text);
      if (opening.isConflict) own.conflict(opening.savedBy);
      else notify(session, texts.editor.notices.restored);
    } else if (opening.savedAt !== null) {
      session.ui.setState({ save: { kind: "saved", at: Date.parse(opening.savedAt) } });
    } else {
      // Whoever shows the version asks the keeper, which was not there when the page was drawn.
      session.ui.setState({ save: { kind: "clean" } });
    }
    const stops = [
      session.editor.subscribe((state, before) => {
        if (isReplacing.current || state.history.present === before.history.present) return;
        keeper.current?.change(textOf(state.history.present));
      }),
      onTenantEvents((events) => {
        for (const event of events) {
          const data = event.data as WorkflowEvent;
          if (event.type.startsWith("workflow.") && data.workflowId === workflowId) hear(event.type, data);
        }
      }),
      useLive.subscribe(({ state }) => {
        if (state.kind === "live") keeper.current?.wake();
      }),
    ];
    const hear = (type: string, data: WorkflowEvent): void => {
      keeper.current?.hear({
        revision: data.revision ?? null,
        version: data.version ?? null,
        by: data.by ?? "",
        isDeleted: type === "workflow.deleted",
      });
    };
    const leave = (): void => keeper.current?.leave();
    addEventListener("pagehide", leave);
    return () => {
      removeEventListener("pagehide", leave);
      for (const stop of stops) stop();
      keeper.current?.close();
    };
  }, [session, actions, opening, workflowId, isReadOnly]);
  return { session, reload: actions.reload, overwrite: actions.overwrite };
}
