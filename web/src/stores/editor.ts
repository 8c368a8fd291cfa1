/** The document that is open, with its history and what is selected in it. Nothing of a run is in here. */

import { createContext, useContext } from "react";
import { createStore, type StoreApi, useStore } from "zustand";
import type { WorkflowDocument } from "../model/document";
import { abort, apply, begin, commit, type History, redo, startHistory, undo } from "../model/history";

export interface EditorState {
  readonly history: History<WorkflowDocument>;
  /** Ids of nodes, notes and edges (`edgeId` of `canvas/flow`). */
  readonly selection: ReadonlySet<string>;
  readonly isReadOnly: boolean;
}

export interface EditorActions {
  /** Change the document: one entry of the history, or a part of the gesture that is under way. */
  edit(label: string, change: (document: WorkflowDocument) => WorkflowDocument): void;
  begin(label: string): void;
  commit(): void;
  abort(): void;
  undo(): void;
  redo(): void;
  select(ids: Iterable<string>): void;
  /** Another document takes the place of this one: nothing of it can be undone. */
  open(document: WorkflowDocument, isReadOnly?: boolean): void;
}

export type EditorStore = StoreApi<EditorState> & { readonly actions: EditorActions };

const NOTHING: ReadonlySet<string> = new Set();

export function createEditor(document: WorkflowDocument, isReadOnly = false): EditorStore {
  const store = createStore<EditorState>()(() => ({
    history: startHistory(document),
    selection: NOTHING,
    isReadOnly,
  }));
  const turn = (change: (history: History<WorkflowDocument>) => History<WorkflowDocument>): void => {
    const { history, isReadOnly: isFixed } = store.getState();
    const next = change(history);
    if (!isFixed && next !== history) store.setState({ history: next });
  };
  const actions: EditorActions = {
    edit: (label, change) => turn((history) => apply(history, label, change)),
    begin: (label) => turn((history) => begin(history, label)),
    commit: () => turn(commit),
    abort: () => turn(abort),
    undo: () => turn(undo),
    redo: () => turn(redo),
    select(ids) {
      const next = new Set(ids);
      const { selection } = store.getState();
      const isSame = next.size === selection.size && [...next].every((id) => selection.has(id));
      if (!isSame) store.setState({ selection: next });
    },
    open: (opened, isFixed = false) =>
      store.setState({ history: startHistory(opened), selection: NOTHING, isReadOnly: isFixed }),
  };
  return Object.assign(store, { actions });
}

export const EditorContext = createContext<EditorStore | null>(null);

export function useEditorStore(): EditorStore {
  const store = useContext(EditorContext);
  if (store === null) throw new Error("there is no editor around");
  return store;
}

export function useEditor<T>(select: (state: EditorState) => T): T {
  return useStore(useEditorStore(), select);
}

export const useDocument = (): WorkflowDocument => useEditor((state) => state.history.present);
