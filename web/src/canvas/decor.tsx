/** What is shown on steps beside the document and the run: problems, pins, differences, and the wire that is dragged. */

import { createContext, useContext } from "react";
import { createStore, type StoreApi, useStore } from "zustand";
import type { OpenEnd, Wiring } from "../model/wiring";

/** A wire that is dragged. */
export interface DraggedWire {
  readonly open: OpenEnd;
  readonly wiring: Wiring;
  /** The step below the pointer. */
  readonly over: string | null;
}

export type Difference = "added" | "removed" | "changed" | "moved";

export interface NoteFrame {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** What somebody does on the canvas itself. */
export interface CanvasActions {
  readonly select: (id: string) => void;
  /** Null: it stays as it was. */
  readonly rename: (id: string, label: string | null) => void;
  readonly writeNote: (id: string, text: string | null) => void;
  readonly resizeNote: (id: string, frame: NoteFrame) => void;
  readonly colorNote: (id: string, color: string) => void;
  readonly colorGroup: (id: string, color: string) => void;
}

export interface Decor {
  /** How many errors a step has. */
  readonly problems: ReadonlyMap<string, number>;
  /** Steps whose result is pinned. */
  readonly pins: ReadonlySet<string>;
  /** Steps that were edited after the run that is shown. */
  readonly edited: ReadonlySet<string>;
  /** Of steps and of edges. */
  readonly differences: ReadonlyMap<string, Difference>;
  /** The step or the note whose text is edited in its place. */
  readonly naming: string | null;
  readonly wire: DraggedWire | null;
  /** Missing: nothing can be changed. */
  readonly actions: CanvasActions | null;
}

export const NO_DECOR: Decor = {
  problems: new Map(),
  pins: new Set(),
  edited: new Set(),
  differences: new Map(),
  naming: null,
  wire: null,
  actions: null,
};

export type DecorStore = StoreApi<Decor>;
export const createDecor = (): DecorStore => createStore<Decor>()(() => NO_DECOR);

const EMPTY = createDecor();
export const DecorContext = createContext<DecorStore | null>(null);

/** A part of it; a component is drawn again when that part has changed. */
export function useDecor<T>(select: (decor: Decor) => T): T {
  return useStore(useContext(DecorContext) ?? EMPTY, select);
}
