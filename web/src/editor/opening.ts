/** A workflow is opened: what the scheduler has, or edits of this browser that it does not have yet. */

import type { LocalCopies, LocalCopy } from "./localCopies";
import { emptyText } from "./parts";
import type { Opened } from "./requests";

export interface Opening extends Opened {
  /** Edits of this browser were found that the scheduler does not have. */
  readonly isRestored: boolean;
  /** They were made from something else than what the scheduler has now. */
  readonly isConflict: boolean;
}

export class MissingWorkflow extends Error {}

function joinedWith(server: Opened, local: LocalCopy | null): Opening {
  if (local === null || local.text === server.text)
    return { ...server, isRestored: false, isConflict: false };
  const isConflict = local.revision !== server.revision || local.version !== server.version;
  return {
    ...server,
    text: local.text,
    isRestored: true,
    isConflict,
  };
}

/** Throws MissingWorkflow if there is none of this id and it is not to be a new one. */
export async function openWorkflow(
  id: string,
  newName: string | null,
  read: (id: string) => Promise<Opened | null>,
  copies: LocalCopies,
): Promise<Opening> {
  const local = await copies.get(id).catch(() => null);
  const server = await read(id);
  if (server !== null) return joinedWith(server, local);
  if (newName === null && local === null) throw new MissingWorkflow(id);
  const empty = { text: emptyText(id, newName ?? ""), revision: 0, version: 0, savedAt: null, savedBy: null };
  return joinedWith(empty, local);
}
