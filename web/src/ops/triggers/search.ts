/** What the address of the page says. */

export interface TriggersSearch {
  readonly workflow?: string;
  readonly trigger?: string;
}

export function readTriggersSearch(search: Record<string, unknown>): TriggersSearch {
  const { workflow, trigger } = search;
  return typeof workflow === "string" && typeof trigger === "string" ? { workflow, trigger } : {};
}
