/** One workflow that is open in the editor: its document, how it is saved, and what is shown around it. */

import { createContext, useContext } from "react";
import { createStore, type StoreApi, useStore } from "zustand";
import { createDecor, type DecorStore } from "../canvas/decor";
import type { Drawn } from "../canvas/gestures";
import type { NodeCatalog } from "../model/catalog";
import type { Position } from "../model/definition";
import type { WorkflowDocument } from "../model/document";
import type { OpenEnd } from "../model/wiring";
import { createEditor, type EditorStore } from "../stores/editor";
import type { DraftKeeper, SaveState } from "./draftKeeper";
import type { FoundProblem } from "./problemPlaces";

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** The pop-up to add a step. */
export interface QuickAdd {
  /** Where it opens, in the window. */
  readonly screen: Point;
  /** Where the step goes; null: after the selected one. */
  readonly at: Position | null;
  /** The wire that it hangs on. */
  readonly open: OpenEnd | null;
}

export type Dialog = "shortcuts" | "run" | "publish" | "versions" | "delete" | "examples" | "connect";

export interface Notice {
  readonly text: string;
  readonly kind: "info" | "error";
}

export interface UiState {
  readonly save: SaveState;
  readonly quickAdd: QuickAdd | null;
  readonly dialog: Dialog | null;
  readonly menu: Point | null;
  readonly notice: Notice | null;
  readonly problems: readonly FoundProblem[];
  readonly runId: string | null;
  /** The document that the run was started with, if it was started here. */
  readonly runDocument: WorkflowDocument | null;
  /** A run is being submitted. */
  readonly isStarting: boolean;
  /** The tab of the dock that is shown. */
  readonly tab: string;
  /** How often the dock was asked for: each time it opens. */
  readonly dockAsked: number;
  /** The workflow is edited as JSON. */
  readonly asText: boolean;
  /** The field of the selected step that is to be shown. */
  readonly field: string | null;
}

/** What the canvas can be asked while it is there. */
export interface CanvasHandle {
  zoomIn(): void;
  zoomOut(): void;
  zoomToFull(): void;
  fit(): void;
  reveal(id: string): void;
  toFlow(point: Point): Position;
  /** The middle of what is seen, in the window. */
  middle(): Point;
  /** Where the pointer is, if it is over the canvas. */
  pointer(): Point | null;
  focus(): void;
  /** What is drawn, with its places and sizes. */
  drawn(): readonly Drawn[];
}

export interface Permissions {
  readonly mayEdit: boolean;
  readonly mayRun: boolean;
}

export interface EditorSession extends Permissions {
  readonly workflowId: string;
  /** The version that was opened; null if it was a draft or something new. */
  readonly openedVersion: number | null;
  readonly catalog: () => NodeCatalog;
  readonly editor: EditorStore;
  readonly decor: DecorStore;
  readonly ui: StoreApi<UiState>;
  /** Null: what is shown is read-only. */
  readonly keeper: () => DraftKeeper | null;
  readonly canvas: { current: CanvasHandle | null };
  /** Finds the problems of the document as it is now, without waiting for a pause. */
  readonly recheck: { current: (() => Promise<void>) | null };
}

export const START: UiState = {
  save: { kind: "clean" },
  quickAdd: null,
  dialog: null,
  menu: null,
  notice: null,
  problems: [],
  runId: null,
  runDocument: null,
  isStarting: false,
  tab: "problems",
  dockAsked: 0,
  asText: false,
  field: null,
};

export interface SessionParts extends Permissions {
  readonly workflowId: string;
  readonly openedVersion: number | null;
  readonly document: WorkflowDocument;
  readonly isReadOnly: boolean;
  readonly catalog: () => NodeCatalog;
  readonly keeper: () => DraftKeeper | null;
}

export function createSession(parts: SessionParts): EditorSession {
  const { workflowId, openedVersion, document, isReadOnly, catalog, keeper, mayEdit, mayRun } = parts;
  return {
    workflowId,
    openedVersion,
    mayEdit,
    mayRun,
    catalog,
    keeper,
    editor: createEditor(document, isReadOnly),
    decor: createDecor(),
    ui: createStore<UiState>()(() => START),
    canvas: { current: null },
    recheck: { current: null },
  };
}

export const SessionContext = createContext<EditorSession | null>(null);

export function useSession(): EditorSession {
  const session = useContext(SessionContext);
  if (session === null) throw new Error("no workflow is open around");
  return session;
}

export function useUi<T>(select: (state: UiState) => T): T {
  return useStore(useSession().ui, select);
}

export const isReadOnly = (session: EditorSession): boolean => session.editor.getState().isReadOnly;
export const documentOf = (session: EditorSession): WorkflowDocument =>
  session.editor.getState().history.present;

export function notify(session: EditorSession, text: string, kind: Notice["kind"] = "info"): void {
  session.ui.setState({ notice: { text, kind } });
}

/** Show a tab of the dock. */
export function openDock(session: EditorSession, tab: string): void {
  session.ui.setState(({ dockAsked }) => ({ tab, dockAsked: dockAsked + 1 }));
}
