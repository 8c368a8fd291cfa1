/** All workflows and drafts, page by page. */

import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../api/client";
import { joinedRows, type WorkflowRow } from "./workflowRows";

interface Page<T> {
  readonly items: readonly T[];
  readonly nextCursor: string | null;
}

/** More than this is found by searching. */
const MAX_PAGES = 10;

async function allPages<T>(read: (cursor: string) => Promise<Page<T>>): Promise<readonly T[]> {
  const all: T[] = [];
  let cursor = "";
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { items, nextCursor } = await read(cursor);
    all.push(...items);
    if (nextCursor === null) break;
    cursor = nextCursor;
  }
  return all;
}

export function useWorkflowRows() {
  return useQuery({
    queryKey: ["workflows", "rows"],
    queryFn: async (): Promise<readonly WorkflowRow[]> => {
      const [versions, drafts] = await Promise.all([
        allPages(async (cursor) =>
          dataOf(await api.GET("/api/v1/workflows", { params: { query: { limit: 200, cursor } } })),
        ),
        allPages(async (cursor) =>
          dataOf(await api.GET("/api/v1/workflows/drafts", { params: { query: { limit: 200, cursor } } })),
        ),
      ]);
      return joinedRows(versions, drafts);
    },
  });
}
