/** What pages ask of the scheduler about workflows, runs and the catalog. */

import { useQuery } from "@tanstack/react-query";
import { NodeCatalog, type NodeType } from "../model/catalog";
import { openDocument, type WorkflowDocument } from "../model/document";
import { api, dataOf } from "./client";

/** The types of nodes. Events of packages fetch it anew. */
export function useCatalog() {
  return useQuery({
    queryKey: ["packages", "catalog"],
    queryFn: async () =>
      new NodeCatalog(dataOf(await api.GET("/api/v1/catalog/nodes")).items as unknown as readonly NodeType[]),
    staleTime: 60_000,
  });
}

/** The definition that a run was started with, byte for byte as it is stored. */
export function useRunDocument(runId: string) {
  return useQuery({
    queryKey: ["run-definition", runId],
    queryFn: async (): Promise<WorkflowDocument> => {
      const answer = await api.GET("/api/v1/runs/{runId}/definition", {
        params: { path: { runId } },
        parseAs: "text",
      });
      return openDocument(dataOf(answer) as unknown as string);
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export function useWorkflowDocument(workflowId: string, version?: number) {
  return useQuery({
    queryKey: ["workflows", workflowId, version ?? "latest"],
    queryFn: async (): Promise<WorkflowDocument> => {
      const answer = await api.GET("/api/v1/workflows/{id}", {
        params: { path: { id: workflowId }, query: version === undefined ? {} : { version } },
        parseAs: "text",
      });
      return openDocument(dataOf(answer) as unknown as string);
    },
  });
}
