/** The way to a step that is inside of others. */

export interface Crumb {
  readonly nodeId: string;
  /** Where that step is itself. */
  readonly scope: string | null;
  readonly item: number;
}

/** The steps around a scope, the outermost first. `isMap` says whether a step has an item for each place of a list. */
export function crumbsOf(scopePath: string, isMap: (nodeId: string) => boolean): readonly Crumb[] {
  const parts = scopePath.split("/");
  return parts.map((part, place) => {
    const nodeId = part.slice(0, part.lastIndexOf(":"));
    const outer = parts.slice(0, place).join("/");
    const own = isMap(nodeId) ? [outer, part].filter((one) => one !== "").join("/") : outer;
    return { nodeId, scope: own === "" ? null : own, item: Number(part.slice(part.lastIndexOf(":") + 1)) };
  });
}

/** Of a step that is an item of a map: the scope of the map, and the place of the item. */
export function itemOf(
  nodeId: string,
  scope: string | undefined,
): { scope: string | undefined; item: number } | null {
  if (scope === undefined) return null;
  const last = scope.slice(scope.lastIndexOf("/") + 1);
  if (!last.startsWith(`${nodeId}:`)) return null;
  const outer = scope.slice(0, Math.max(0, scope.length - last.length - 1));
  return { scope: outer === "" ? undefined : outer, item: Number(last.slice(nodeId.length + 1)) };
}
