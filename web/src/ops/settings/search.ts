/** What the address of the page says. */

import { texts } from "../../texts";

export type SettingsTab = keyof typeof texts.operations.settings.tabs;

export interface SettingsSearch {
  readonly tab?: SettingsTab;
}

export function readSettingsSearch(search: Record<string, unknown>): SettingsSearch {
  const { tab } = search;
  return typeof tab === "string" && Object.hasOwn(texts.operations.settings.tabs, tab)
    ? { tab: tab as SettingsTab }
    : {};
}
