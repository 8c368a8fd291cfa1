/**
 * Undo and redo. A gesture is one entry, however many edits it makes: a drag begins a transaction, each move changes
 * the document, and the end of the drag commits it. Documents share their parts, so that an entry costs little.
 */

export const MAX_ENTRIES = 200;

interface Entry<T> {
  readonly label: string;
  readonly state: T;
}

export interface History<T> {
  readonly present: T;
  /** The states before, the newest last; each label says what was done after it. */
  readonly past: readonly Entry<T>[];
  /** What was undone, the next to redo last. */
  readonly future: readonly Entry<T>[];
  readonly open: Entry<T> | null;
}

export function startHistory<T>(present: T): History<T> {
  return { present, past: [], future: [], open: null };
}

/** Change the document: as an entry of its own, or as a part of the open transaction. No change is no entry. */
export function apply<T>(history: History<T>, label: string, edit: (state: T) => T): History<T> {
  const present = edit(history.present);
  if (present === history.present) return history;
  if (history.open !== null) return { ...history, present };
  return { ...pushed(history, { label, state: history.present }), present };
}

/** Begin a transaction. One that is open is committed first. */
export function begin<T>(history: History<T>, label: string): History<T> {
  const settled = commit(history);
  return { ...settled, open: { label, state: settled.present } };
}

export function commit<T>(history: History<T>): History<T> {
  const { open } = history;
  if (open === null) return history;
  const closed = { ...history, open: null };
  return open.state === history.present ? closed : pushed(closed, open);
}

/** Give the transaction up: the document is as it was before it. */
export function abort<T>(history: History<T>): History<T> {
  return history.open === null ? history : { ...history, present: history.open.state, open: null };
}

function pushed<T>(history: History<T>, entry: Entry<T>): History<T> {
  return { ...history, past: [...history.past, entry].slice(-MAX_ENTRIES), future: [] };
}

export function undo<T>(history: History<T>): History<T> {
  const settled = commit(history);
  const entry = settled.past.at(-1);
  if (entry === undefined) return settled;
  return {
    present: entry.state,
    past: settled.past.slice(0, -1),
    future: [...settled.future, { label: entry.label, state: settled.present }],
    open: null,
  };
}

export function redo<T>(history: History<T>): History<T> {
  const settled = commit(history);
  const entry = settled.future.at(-1);
  if (entry === undefined) return settled;
  return {
    present: entry.state,
    past: [...settled.past, { label: entry.label, state: settled.present }],
    future: settled.future.slice(0, -1),
    open: null,
  };
}

/** What undo and redo would do, in words; null if there is nothing. */
export const undoLabel = <T>(history: History<T>): string | null =>
  history.open?.label ?? history.past.at(-1)?.label ?? null;
export const redoLabel = <T>(history: History<T>): string | null => history.future.at(-1)?.label ?? null;
