/** What the address of the page says. */

export interface PackagesSearch {
  readonly package?: string;
}

export function readPackagesSearch(search: Record<string, unknown>): PackagesSearch {
  return typeof search.package === "string" ? { package: search.package } : {};
}
