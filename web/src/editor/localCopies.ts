/** Edits that the scheduler does not have yet, kept in the browser (IndexedDB): they survive a reload and a crash. */

export interface LocalCopy {
  readonly workflowId: string;
  readonly text: string;
  /** The revision and the version that the edits were made from. */
  readonly revision: number;
  readonly version: number;
  readonly at: number;
}

export interface LocalCopies {
  get(workflowId: string): Promise<LocalCopy | null>;
  put(copy: LocalCopy): Promise<void>;
  /** At once, because the page goes away: nothing that takes its time is finished then. */
  putNow(copy: LocalCopy): void;
  remove(workflowId: string): Promise<void>;
}

const NAME = "astraflow-editor";
const STORE = "drafts";

function opened(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(NAME, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "workflowId" });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

async function within<T>(
  mode: IDBTransactionMode,
  ask: (store: IDBObjectStore) => IDBRequest<T>,
): Promise<T> {
  const database = await opened();
  try {
    return await new Promise<T>((resolve, reject) => {
      const request = ask(database.transaction(STORE, mode).objectStore(STORE));
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  } finally {
    database.close();
  }
}

/** A database answers later; this store answers at once, and is small. */
const lastWords = (workflowId: string): string => `astraflow-unsaved-${workflowId}`;

function readLastWords(workflowId: string): LocalCopy | null {
  try {
    return JSON.parse(localStorage.getItem(lastWords(workflowId)) ?? "null") as LocalCopy | null;
  } catch {
    return null;
  }
}

export const browserCopies: LocalCopies = {
  async get(workflowId) {
    const last = readLastWords(workflowId);
    const found: LocalCopy | undefined = await within("readonly", (store) => store.get(workflowId));
    return last !== null && last.at >= (found?.at ?? 0) ? last : (found ?? null);
  },
  async put(copy) {
    await within("readwrite", (store) => store.put(copy));
  },
  putNow(copy) {
    try {
      localStorage.setItem(lastWords(copy.workflowId), JSON.stringify(copy));
    } catch {
      // It is full: what was put before is all that is kept.
    }
  },
  async remove(workflowId) {
    localStorage.removeItem(lastWords(workflowId));
    await within("readwrite", (store) => store.delete(workflowId));
  },
};
