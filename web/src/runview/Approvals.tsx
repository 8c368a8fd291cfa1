import { Button, Group, Textarea } from "@mantine/core";
import { IconUserCheck } from "@tabler/icons-react";
import { useEffect, useState } from "react";
import { useMay } from "../app/session";
import type { Json } from "../model/json/tree";
import { useRun } from "../stores/run";
import { texts } from "../texts";
import { formatClock, formatDate } from "../values/format";
import classes from "./alerts.module.css";
import { type Fields, ParametersField } from "./ParametersField";
import { type OpenApproval, useApprovals, useDecision } from "./queries";
import shared from "./shared.module.css";
import { itemsOf } from "./timeline";

/** What a form begins with: the defaults that it names. */
function defaultsOf(form: Fields): Fields {
  const properties = (form.properties ?? {}) as Readonly<Record<string, { readonly default?: Json }>>;
  const given = Object.entries(properties).flatMap(([name, one]) =>
    one.default === undefined ? [] : [[name, one.default] as const],
  );
  return Object.fromEntries(given);
}

/** A decision that a run waits for, to be made here. */
export function ApprovalCard({ approval }: { readonly approval: OpenApproval }) {
  const words = texts.runView.approvals;
  const form = approval.form as Fields | undefined;
  const [comment, setComment] = useState("");
  const [values, setValues] = useState<Fields | null>(() => (form === undefined ? {} : defaultsOf(form)));
  const decide = useDecision(approval);
  const mayDecide = useMay("start");
  const send = (approved: boolean): void =>
    decide.mutate({
      approved,
      ...(comment === "" ? {} : { comment }),
      ...(form === undefined || !approved ? {} : { values: values as Record<string, never> }),
      ...(approval.scopePath === undefined ? {} : { scope: approval.scopePath }),
    });
  const where = approval.scopePath === undefined ? "" : ` ${itemsOf(approval.scopePath)}`;
  const facts = [
    approval.since === null ? null : words.since(formatClock(approval.since)),
    approval.until === undefined ? null : words.until(formatDate(approval.until)),
    approval.roles.length === 0 ? null : words.roles(approval.roles),
  ].filter((one) => one !== null);
  return (
    <article className={classes.approval} aria-label={words.title(approval.label)}>
      <IconUserCheck size={18} aria-hidden="true" />
      <div className={classes.approvalBody}>
        <h2 className={shared.subtitle}>{words.title(`${approval.label}${where}`)}</h2>
        <p className={classes.question}>{approval.message}</p>
        <small className={shared.dim}>{facts.join(" · ")}</small>
        {form !== undefined && (
          <ParametersField label={words.values} schema={form} value={values ?? {}} onChange={setValues} />
        )}
        <Textarea
          label={words.comment}
          placeholder={words.commentHint}
          autosize
          minRows={1}
          maxRows={5}
          size="xs"
          value={comment}
          onChange={(event) => setComment(event.currentTarget.value)}
        />
        <Group gap={8}>
          <Button
            disabled={!mayDecide || values === null}
            loading={decide.isPending}
            onClick={() => send(true)}
          >
            {words.approve}
          </Button>
          <Button variant="default" disabled={!mayDecide || decide.isPending} onClick={() => send(false)}>
            {words.reject}
          </Button>
        </Group>
      </div>
    </article>
  );
}

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
        <ApprovalCard key={`${approval.scopePath ?? ""}/${approval.nodeId}`} approval={approval} />
      ))}
    </section>
  );
}
