/** What the page of a run asks of the scheduler. Events fetch anew what is below the key `runs`. */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { api, dataOf } from "../api/client";
import type { components } from "../api/schema";
import { tellDone, useAction } from "../app/actions";
import { texts } from "../texts";
import type { OpenApproval } from "./approvals";
import type { TimelineEntry } from "./timeline";

export type RunHeaderData = components["schemas"]["Run"];
export type NodeDetail = components["schemas"]["NodeDetail"];
export type RunSummary = components["schemas"]["RunSummary"];
export type RerunRequest = Partial<components["schemas"]["RerunRequest"]>;

export function useRunHeader(runId: string) {
  return useQuery({
    queryKey: ["runs", "one", runId],
    queryFn: async () =>
      dataOf(await api.GET("/api/v1/runs/{runId}", { params: { path: { runId }, query: { nodes: false } } })),
    placeholderData: keepPreviousData,
  });
}

/** A step with its parameters, attempts and result. `seen` says what is known of it: when that changes it is asked anew. */
export function useNodeDetail(runId: string, nodeId: string, scope: string | undefined, seen: string) {
  return useQuery({
    queryKey: ["run-node", runId, nodeId, scope ?? "", seen],
    queryFn: async () =>
      dataOf(
        await api.GET("/api/v1/runs/{runId}/nodes/{nodeId}", {
          params: { path: { runId, nodeId }, query: scope === undefined ? {} : { scope } },
        }),
      ),
    // Of the same step what was known stays until the answer is there.
    placeholderData: (before, query) =>
      query?.queryKey[2] === nodeId && query.queryKey[3] === (scope ?? "") ? before : undefined,
  });
}

/** More entries than anybody looks at; what is beyond them is said. */
export const MAX_ENTRIES = 20_000;

export function useTimeline(runId: string, isActive: boolean) {
  return useQuery({
    queryKey: ["run-timeline", runId],
    queryFn: async () => {
      const entries: TimelineEntry[] = [];
      let cursor: string | null = null;
      do {
        const page: components["schemas"]["TimelinePage"] = dataOf(
          await api.GET("/api/v1/runs/{runId}/timeline", {
            params: { path: { runId }, query: cursor === null ? {} : { cursor } },
          }),
        );
        entries.push(...page.items);
        cursor = page.nextCursor;
      } while (cursor !== null && entries.length < MAX_ENTRIES);
      return { entries, isWhole: cursor === null };
    },
    refetchInterval: (query) =>
      !isActive ? false : (query.state.data?.entries.length ?? 0) > 1_000 ? 5_000 : 1_500,
  });
}

export function useArtifacts(runId: string, scope?: string) {
  return useQuery({
    queryKey: ["resources", "run", runId, scope ?? ""],
    queryFn: async () =>
      dataOf(
        await api.GET("/api/v1/runs/{runId}/artifacts", {
          params: { path: { runId }, query: scope === undefined ? {} : { scope } },
        }),
      ).items,
  });
}

const APPROVALS_PAGE = 200;
/** More decisions than a person makes in a day. */
const MAX_APPROVALS = 2_000;

/** The open approvals of the tenant. `everyMs`: ask again after so long, because no event tells of a new one. */
export function useApprovals(everyMs?: number) {
  return useQuery({
    queryKey: ["runs", "approvals"],
    queryFn: async () => {
      const found: OpenApproval[] = [];
      let cursor: string | null = null;
      do {
        const page: components["schemas"]["OpenApprovalPage"] = dataOf(
          await api.GET("/api/v1/approvals", {
            params: { query: { limit: APPROVALS_PAGE, ...(cursor === null ? {} : { cursor }) } },
          }),
        );
        found.push(...page.items);
        cursor = page.nextCursor;
      } while (cursor !== null && found.length < MAX_APPROVALS);
      return found;
    },
    placeholderData: keepPreviousData,
    refetchInterval: everyMs ?? false,
  });
}

/** What changes a run; what is shown of it is fetched anew afterwards. */
export function useRunActions(runId: string) {
  const changes = ["runs", "run-timeline"];
  const navigate = useNavigate();
  const cancel = useAction({
    run: async () => dataOf(await api.POST("/api/v1/runs/{runId}/cancel", { params: { path: { runId } } })),
    changes,
    failed: texts.runView.actions.cancelFailed,
  });
  const rerun = useAction({
    run: async (request: RerunRequest) =>
      dataOf(
        await api.POST("/api/v1/runs/{runId}/rerun", {
          params: { path: { runId } },
          body: request as components["schemas"]["RerunRequest"],
        }),
      ),
    changes,
    failed: texts.runView.actions.rerunFailed,
    done: (made) => void navigate({ to: "/runs/$runId", params: { runId: made.runId }, search: {} }),
  });
  return { cancel, rerun };
}

export type Decision = components["schemas"]["ApprovalDecision"];

export function useDecision(approval: OpenApproval, onDone: () => void) {
  const { runId, nodeId, label } = approval;
  const words = texts.runView.approvals;
  return useAction({
    run: async (decision: Decision) => {
      await api.POST("/api/v1/runs/{runId}/nodes/{nodeId}/approval", {
        params: { path: { runId, nodeId } },
        body: decision,
      });
    },
    changes: ["runs", "run-timeline"],
    failed: words.failed,
    done: (_, { approved }) => {
      tellDone(approved ? words.approved(label) : words.rejected(label));
      onDone();
    },
  });
}
