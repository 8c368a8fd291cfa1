import { useEffect } from "react";
import { useRun } from "../stores/run";
import { texts } from "../texts";
import { ApprovalCard } from "./ApprovalCard";
import classes from "./alerts.module.css";
import { keyOf } from "./approvals";
import { useApprovals } from "./queries";

/** The open decisions of the run around. */
export function Approvals({ runId }: { readonly runId: string }) {
  const waiting = useRun((run) => {
    let count = 0;
    for (const node of run.nodes.values()) if (node.waitingFor?.kind === "approval") count += 1;
    return count;
  });
  const { data, refetch } = useApprovals();
  // The list comes from the API, and what happens to the run says when it is another one.
  useEffect(() => {
    if (waiting >= 0) void refetch();
  }, [waiting, refetch]);
  const own = waiting === 0 ? [] : (data ?? []).filter((one) => one.runId === runId);
  if (own.length === 0) return null;
  return (
    <section className={classes.approvals} aria-label={texts.runView.approvals.label}>
      {own.map((approval) => (
        <ApprovalCard key={keyOf(approval)} approval={approval} />
      ))}
    </section>
  );
}
