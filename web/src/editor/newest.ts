/** What of a workflow is opened. Nothing is asked for that is not there: a browser reports each 404 in its console. */

import type { Opened } from "./requests";

export interface WorkflowReads {
  readonly hasDraft: (id: string) => Promise<boolean>;
  readonly hasVersion: (id: string) => Promise<boolean>;
  readonly readDraft: (id: string) => Promise<Opened>;
  readonly readVersion: (id: string) => Promise<Opened>;
  /** Whether an error of a read says that there is none. */
  readonly isMissing: (error: unknown) => boolean;
}

/**
 * The draft if there is one, else the newest version; null if there is neither. `isNew`: most likely there is neither,
 * so that also a version is asked for only if it is there.
 */
export async function newestOf(id: string, isNew: boolean, reads: WorkflowReads): Promise<Opened | null> {
  const unlessMissing = (read: Promise<Opened>): Promise<Opened | null> =>
    read.catch((error: unknown) => {
      if (reads.isMissing(error)) return null;
      throw error;
    });
  // Whoever publishes or deletes between two requests makes a draft or a version missing all the same.
  const draft = (await reads.hasDraft(id)) ? await unlessMissing(reads.readDraft(id)) : null;
  if (draft !== null) return draft;
  if (isNew && !(await reads.hasVersion(id))) return null;
  return unlessMissing(reads.readVersion(id));
}
