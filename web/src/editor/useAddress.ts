/** Keeps the address and the session together. */

import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { nodesOf } from "../model/document";
import type { EditorSearch } from "./address";
import { documentOf, type EditorSession } from "./session";

const PAUSE_MS = 250;

export function useAddress(session: EditorSession, search: EditorSearch): void {
  const navigate = useNavigate();
  const first = useRef(search);
  useEffect(() => {
    const { node, run, field } = first.current;
    if (node !== undefined && nodesOf(documentOf(session)).some((one) => one.id === node))
      session.editor.actions.select([node]);
    session.ui.setState({ runId: run ?? null, field: field ?? null });
  }, [session]);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const write = (): void => {
      const { selection } = session.editor.getState();
      const { runId, field, save } = session.ui.getState();
      const [only] = selection.size === 1 ? selection : [];
      const node = nodesOf(documentOf(session)).find((one) => one.id === only)?.id;
      void navigate({
        to: ".",
        replace: true,
        search: ({ version, compare, new: isNew }: EditorSearch): EditorSearch => ({
          ...(version === undefined ? {} : { version }),
          ...(compare === undefined ? {} : { compare }),
          ...(isNew && save.kind !== "saved" ? { new: true } : {}),
          ...(node === undefined ? {} : { node }),
          ...(node !== undefined && field ? { field } : {}),
          ...(runId === null ? {} : { run: runId }),
        }),
      });
    };
    const later = (): void => {
      clearTimeout(timer);
      timer = setTimeout(write, PAUSE_MS);
    };
    const stops = [
      session.editor.subscribe((state, before) => {
        if (state.selection === before.selection) return;
        const { field } = session.ui.getState();
        // A field belongs to the step that it was opened for.
        if (field !== null && before.selection.size > 0) session.ui.setState({ field: null });
        later();
      }),
      session.ui.subscribe((state, before) => {
        const isSaved = state.save.kind === "saved" && before.save.kind !== "saved";
        if (state.runId !== before.runId || state.field !== before.field || isSaved) later();
      }),
    ];
    return () => {
      clearTimeout(timer);
      for (const stop of stops) stop();
    };
  }, [session, navigate]);
}
