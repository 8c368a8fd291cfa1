import { Button, SegmentedControl, Title } from "@mantine/core";
import { IconUserCheck } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { Empty, Panel } from "../app/PanelStates";
import { useSession } from "../app/session";
import { Ago } from "../ops/parts";
import { ApprovalCard } from "../runview/ApprovalCard";
import { keyOf, type OpenApproval, openFor } from "../runview/approvals";
import classes from "../runview/list/list.module.css";
import { useApprovals, useRunHeader } from "../runview/queries";
import shared from "../runview/shared.module.css";
import { texts } from "../texts";
import { shortId } from "../values/format";

const words = texts.runView.approvals;
/** No event tells that a run begins to wait for a person. */
const ASK_MS = 3_000;
/** Each card has a form: more of them at once are slow to draw, and nobody reads them all. */
const AT_ONCE = 20;

/** All decisions of the tenant that somebody waits for. */
export function ApprovalsPage() {
  const session = useSession();
  const query = useApprovals(ASK_MS);
  const [isOthers, setIsOthers] = useState(false);
  const list = useRef<HTMLElement>(null);
  const { mine, others } = openFor(session, query.data ?? []);
  const hasChoice = others.length > 0 || isOthers;
  return (
    <div className={classes.page}>
      <div className={classes.head}>
        <Title order={1}>{words.page}</Title>
        {hasChoice && (
          <SegmentedControl
            size="xs"
            aria-label={words.whose}
            data={[
              { value: "mine", label: words.mine(mine.length) },
              { value: "others", label: words.others(others.length) },
            ]}
            value={isOthers ? "others" : "mine"}
            onChange={(value) => setIsOthers(value === "others")}
          />
        )}
      </div>
      <Panel query={query}>
        {() => (
          <section ref={list} tabIndex={-1} aria-label={words.label} className={classes.cards}>
            <Cards
              key={isOthers ? "others" : "mine"}
              approvals={isOthers ? others : mine}
              isOthers={isOthers}
              // What had the focus is gone with its card.
              onDecided={() => list.current?.focus()}
            />
          </section>
        )}
      </Panel>
    </div>
  );
}

interface CardsProps {
  readonly approvals: readonly OpenApproval[];
  readonly isOthers: boolean;
  readonly onDecided: () => void;
}

function Cards({ approvals, isOthers, onDecided }: CardsProps) {
  const [shown, setShown] = useState(AT_ONCE);
  if (approvals.length === 0)
    return isOthers ? (
      <Empty icon={IconUserCheck} title={words.noneForOthers} />
    ) : (
      <Empty icon={IconUserCheck} title={words.none} hint={words.noneHint} />
    );
  const left = approvals.length - shown;
  return (
    <>
      {approvals.slice(0, shown).map((approval) => (
        <div key={keyOf(approval)} className={classes.card}>
          <ApprovalCard approval={approval} origin={<Origin approval={approval} />} onDecided={onDecided} />
        </div>
      ))}
      {left > 0 && (
        <Button variant="default" w="fit-content" mx="auto" onClick={() => setShown(shown + AT_ONCE)}>
          {words.showMore(left)}
        </Button>
      )}
    </>
  );
}

/** The workflow and the run that wait, and for how long they have. */
function Origin({ approval }: { readonly approval: OpenApproval }) {
  const { runId, nodeId, scopePath, since } = approval;
  const run = useRunHeader(runId).data;
  return (
    <div className={classes.origin}>
      {run !== undefined && (
        <Link
          to="/workflows/$workflowId"
          params={{ workflowId: run.workflowId }}
          search={{}}
          className={shared.link}
        >
          {run.name || shortId(run.workflowId)}
        </Link>
      )}
      <Link
        to="/runs/$runId"
        params={{ runId }}
        search={{ step: nodeId, ...(scopePath === undefined ? {} : { scope: scopePath }) }}
        className={shared.link}
      >
        #{shortId(runId)}
      </Link>
      {since !== null && <Ago at={since} />}
    </div>
  );
}
