import { Button, Group, Textarea } from "@mantine/core";
import { IconUserCheck } from "@tabler/icons-react";
import { type ReactNode, useState } from "react";
import { useSession } from "../app/session";
import type { Json } from "../model/json/tree";
import { texts } from "../texts";
import { formatClock, formatDate } from "../values/format";
import classes from "./alerts.module.css";
import { mayDecide, type OpenApproval } from "./approvals";
import { type Fields, ParametersField } from "./ParametersField";
import { useDecision } from "./queries";
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

interface Props {
  readonly approval: OpenApproval;
  /** The run and its workflow, where the page around does not tell them. */
  readonly origin?: ReactNode;
  readonly onDecided?: () => void;
}

/** A decision that a run waits for, to be made here. */
export function ApprovalCard({ approval, origin, onDecided = () => {} }: Props) {
  const words = texts.runView.approvals;
  const form = approval.form as Fields | undefined;
  const [comment, setComment] = useState("");
  const [values, setValues] = useState<Fields | null>(() => (form === undefined ? {} : defaultsOf(form)));
  const decide = useDecision(approval, onDecided);
  const isOurs = mayDecide(useSession(), approval);
  const send = (approved: boolean): void =>
    decide.mutate({
      approved,
      ...(comment === "" ? {} : { comment }),
      ...(form === undefined || !approved ? {} : { values: values as Record<string, never> }),
      ...(approval.scopePath === undefined ? {} : { scope: approval.scopePath }),
    });
  const where = approval.scopePath === undefined ? "" : ` ${itemsOf(approval.scopePath)}`;
  const facts = [
    approval.since === null || origin !== undefined ? null : words.since(formatClock(approval.since)),
    approval.until === undefined ? null : words.until(formatDate(approval.until)),
    approval.roles.length === 0 ? null : words.roles(approval.roles),
  ].filter((one) => one !== null);
  return (
    <article className={classes.approval} aria-label={words.title(approval.label)}>
      <IconUserCheck size={18} aria-hidden="true" />
      <div className={classes.approvalBody}>
        <h2 className={shared.subtitle}>{words.title(`${approval.label}${where}`)}</h2>
        {origin}
        <p className={classes.question}>{approval.message}</p>
        <small className={classes.facts}>{facts.join(" · ")}</small>
        {!isOurs && <small className={shared.dim}>{words.notYours}</small>}
        {isOurs && form !== undefined && (
          <ParametersField label={words.values} schema={form} value={values ?? {}} onChange={setValues} />
        )}
        {isOurs && (
          <>
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
              <Button disabled={values === null} loading={decide.isPending} onClick={() => send(true)}>
                {words.approve}
              </Button>
              <Button variant="default" disabled={decide.isPending} onClick={() => send(false)}>
                {words.reject}
              </Button>
            </Group>
          </>
        )}
      </div>
    </article>
  );
}
