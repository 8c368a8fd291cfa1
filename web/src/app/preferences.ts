/** What a person has set in this browser. */

import { create } from "zustand";
import { persist } from "zustand/middleware";

interface Preferences {
  /** Whether single letters are shortcuts. Speech input types letters: it must be possible to switch them off. */
  readonly hasLetterKeys: boolean;
}

export const usePreferences = create<Preferences>()(
  persist((): Preferences => ({ hasLetterKeys: true }), {
    name: "astraflow-preferences",
  }),
);
