import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { api, dataOf } from "../api/client";
import type { LastRun, RanStep } from "../forms/expressions/names";
import type { Json } from "../model/json/tree";

/** What the last run has of inputs and results; null if there is none, or while it is being loaded. */
export function useLastRun(runId: string | null | undefined): LastRun | null {
  const { data } = useQuery({
    queryKey: ["runs", runId, "values"],
    queryFn: async () =>
      dataOf(await api.GET("/api/v1/runs/{runId}", { params: { path: { runId: runId ?? "" } } })),
    enabled: runId != null,
  });
  return useMemo(() => {
    if (data === undefined) return null;
    const steps = new Map<string, RanStep>();
    for (const node of data.nodes ?? []) {
      if (node.scopePath != null) continue;
      const results = node.result == null ? undefined : (node.result as Json);
      const error = node.error == null ? undefined : (node.error as unknown as Json);
      steps.set(node.nodeId, { results, error, state: node.status });
    }
    return {
      id: data.runId,
      workflowId: data.workflowId,
      createdAt: data.createdAt,
      inputs: data.inputs as Json | undefined,
      steps,
    };
  }, [data]);
}

/** One step of a run, with what it was given and its whole result. */
export function useRanStep(runId: string | null | undefined, nodeId: string) {
  return useQuery({
    queryKey: ["runs", runId, "node", nodeId],
    queryFn: async () =>
      dataOf(
        await api.GET("/api/v1/runs/{runId}/nodes/{nodeId}", {
          params: { path: { runId: runId ?? "", nodeId } },
        }),
      ),
    enabled: runId != null,
    retry: false,
  });
}
