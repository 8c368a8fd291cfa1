/** The node types that workflows can use, as the catalog of the API lists them. */

import type { NodeSchemas, NodeUi } from "./definition";

export interface NodeType {
  readonly type: string;
  readonly package: { readonly name: string; readonly version: string };
  readonly label: string;
  readonly category: string;
  readonly schema?: NodeSchemas | null;
  readonly ui?: NodeUi | null;
  readonly executedBy?: string | null;
  readonly middleware?: boolean | null;
  readonly description?: string | null;
  /** Markdown. */
  readonly help?: string | null;
  /** A name of Tabler's set. */
  readonly icon?: string | null;
  readonly color?: string | null;
  readonly executable?: boolean | null;
}

export type CatalogMiss = "type" | "package" | "version" | "ambiguous";

/** Finds the type of a node. It knows of each package one version, that which a node without a version gets. */
export class NodeCatalog {
  private readonly byType = new Map<string, NodeType[]>();
  private readonly packages = new Set<string>();
  readonly all: readonly NodeType[];

  constructor(types: readonly NodeType[]) {
    this.all = types;
    for (const one of types) {
      this.packages.add(one.package.name);
      const known = this.byType.get(one.type);
      if (known === undefined) this.byType.set(one.type, [one]);
      else known.push(one);
    }
  }

  find(type: string, packageName?: string | null, version?: string | null): NodeType | CatalogMiss {
    const found = this.byType.get(type) ?? [];
    if (packageName == null) {
      if (found.length > 1) return "ambiguous";
      return found[0] ?? "type";
    }
    if (!this.packages.has(packageName)) return "package";
    const one = found.find((each) => each.package.name === packageName);
    if (version != null && version !== one?.package.version && version !== this.versionOf(packageName))
      return "version";
    return one ?? "type";
  }

  private versionOf(packageName: string): string | undefined {
    return this.all.find((one) => one.package.name === packageName)?.package.version;
  }
}
