/** The list of workflows: versions and drafts as one, in the order that somebody asks for. */

export interface VersionRow {
  readonly id: string;
  readonly name: string;
  readonly version: number;
  readonly updatedAt: string;
  readonly updatedBy: string;
}

export interface DraftRow {
  readonly id: string;
  readonly name: string;
  readonly baseVersion: number;
  readonly updatedAt: string;
  readonly updatedBy: string;
}

export interface WorkflowRow {
  readonly id: string;
  readonly name: string;
  /** 0: it has no version yet. */
  readonly version: number;
  readonly hasDraft: boolean;
  readonly changedAt: string;
  readonly changedBy: string;
}

export type SortKey = "name" | "version" | "draft" | "changed" | "by";

export interface Sorting {
  readonly key: SortKey;
  readonly isDescending: boolean;
}

/** A draft is newer than the version that it was made from: its name and its time count. */
export function joinedRows(
  versions: readonly VersionRow[],
  drafts: readonly DraftRow[],
): readonly WorkflowRow[] {
  const rows = new Map<string, WorkflowRow>();
  for (const { id, name, version, updatedAt, updatedBy } of versions)
    rows.set(id, { id, name, version, hasDraft: false, changedAt: updatedAt, changedBy: updatedBy });
  for (const draft of drafts) {
    const known = rows.get(draft.id);
    rows.set(draft.id, {
      id: draft.id,
      name: draft.name || (known?.name ?? ""),
      version: known?.version ?? draft.baseVersion,
      hasDraft: true,
      changedAt: draft.updatedAt,
      changedBy: draft.updatedBy,
    });
  }
  return [...rows.values()];
}

export function sortedRows(
  rows: readonly WorkflowRow[],
  { key, isDescending }: Sorting,
): readonly WorkflowRow[] {
  const compare = (one: WorkflowRow, other: WorkflowRow): number => {
    switch (key) {
      case "name":
        return one.name.localeCompare(other.name);
      case "version":
        return one.version - other.version;
      case "draft":
        return Number(one.hasDraft) - Number(other.hasDraft);
      case "changed":
        return one.changedAt.localeCompare(other.changedAt);
      case "by":
        return one.changedBy.localeCompare(other.changedBy);
    }
  };
  return rows.toSorted((one, other) => (isDescending ? -1 : 1) * compare(one, other));
}

export function filteredRows(rows: readonly WorkflowRow[], query: string): readonly WorkflowRow[] {
  const wanted = query.trim().toLowerCase();
  if (wanted === "") return rows;
  return rows.filter((row) => row.name.toLowerCase().includes(wanted) || row.id.startsWith(wanted));
}
