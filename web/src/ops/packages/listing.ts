/** The list of packages: what is in it, and what a text finds. */

import type { components } from "../../api/schema";
import type { NodeCatalog } from "../../model/catalog";
import { texts } from "../../texts";
import { plainOf } from "../../values/plainText";

export type Summary = components["schemas"]["PackageSummary"];

const words = texts.operations.packages;

/** What the list says about a package in one line. */
export const aboutOf = (row: Summary): string =>
  row.description === "" ? words.nodes(row.nodes) : plainOf(row.description);

/** Packages whose steps can be used although nobody published them: they are part of the installation. */
export function builtIn(catalog: Pick<NodeCatalog, "all"> | undefined, rows: readonly Summary[]): Summary[] {
  const published = new Set(rows.map((row) => row.name));
  const found = new Map<string, Summary>();
  for (const { package: one } of catalog?.all ?? []) {
    if (published.has(one.name)) continue;
    found.set(one.name, {
      name: one.name,
      active: one.version,
      pinned: false,
      nodes: (found.get(one.name)?.nodes ?? 0) + 1,
      description: words.builtIn,
      publishedAt: "",
      versions: [one.version],
    });
  }
  return [...found.values()];
}

/** Rows whose name or description has the text. */
export function findPackages(rows: readonly Summary[], text: string): readonly Summary[] {
  const wanted = text.trim().toLowerCase();
  return rows.filter((row) => `${row.name} ${aboutOf(row)}`.toLowerCase().includes(wanted));
}
