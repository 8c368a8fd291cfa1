/** What the page that is open offers to the command palette. */

import { create } from "zustand";

export interface PageCommand {
  readonly id: string;
  readonly label: string;
  /** Its keys as people read them. */
  readonly keys: string;
  readonly run: () => void;
}

interface PageCommands {
  readonly group: string;
  /** Asked when the palette opens: what is there depends on what is selected. */
  readonly list: () => readonly PageCommand[];
}

const NONE: PageCommands = { group: "", list: () => [] };

export const usePageCommands = create<PageCommands>()(() => NONE);

/** Offer commands while a page is there. Returns how to stop. */
export function offerCommands(group: string, list: PageCommands["list"]): () => void {
  usePageCommands.setState({ group, list });
  return () => {
    if (usePageCommands.getState().list === list) usePageCommands.setState(NONE);
  };
}
