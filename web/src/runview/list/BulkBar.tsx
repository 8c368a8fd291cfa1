import { Button } from "@mantine/core";
import { IconArrowsDiff, IconRefresh, IconRepeat } from "@tabler/icons-react";
import { useNavigate } from "@tanstack/react-router";
import { api, dataOf } from "../../api/client";
import { ConfirmButton, tellDone, useAction } from "../../app/actions";
import { useMay } from "../../app/session";
import { texts } from "../../texts";
import type { RunSummary } from "../queries";
import classes from "./list.module.css";

interface Props {
  readonly runs: readonly RunSummary[];
  readonly onDone: () => void;
}

type Act = "cancel" | "failed" | "all";

async function actOn(runId: string, act: Act): Promise<void> {
  const params = { path: { runId } };
  if (act === "cancel") dataOf(await api.POST("/api/v1/runs/{runId}/cancel", { params }));
  else dataOf(await api.POST("/api/v1/runs/{runId}/rerun", { params, body: { mode: act } }));
}

/** What can be done with the runs that are selected. */
export function BulkBar({ runs, onDone }: Props) {
  const words = texts.runView.list;
  const navigate = useNavigate();
  const mayStart = useMay("start");
  const active = runs.filter((run) => run.finishedAt === null);
  const ended = runs.filter((run) => run.finishedAt !== null);
  const failed = ended.filter((run) => run.status !== "succeeded");
  const bulk = useAction({
    run: async ({ act, some }: { act: Act; some: readonly RunSummary[] }) => {
      const outcomes = await Promise.allSettled(some.map((run) => actOn(run.runId, act)));
      return outcomes.filter((one) => one.status === "fulfilled").length;
    },
    changes: ["runs"],
    failed: texts.runView.actions.rerunFailed,
    done: (done, { some }) => {
      tellDone(words.bulkDone(done, some.length - done));
      onDone();
    },
  });
  const [first, second] = runs.toSorted((one, other) => one.createdAt.localeCompare(other.createdAt));
  return (
    <div className={classes.bulk} role="toolbar" aria-label={words.selected(runs.length)}>
      <strong>{words.selected(runs.length)}</strong>
      {mayStart && active.length > 0 && (
        <ConfirmButton
          size="compact-xs"
          label={`${words.cancel} (${active.length})`}
          title={words.cancelTitle(active.length)}
          body={texts.runView.actions.cancelText}
          loading={bulk.isPending}
          onConfirm={() => bulk.mutate({ act: "cancel", some: active })}
        />
      )}
      {mayStart && failed.length > 0 && (
        <Button
          variant="default"
          size="compact-xs"
          leftSection={<IconRefresh size={14} />}
          loading={bulk.isPending}
          onClick={() => bulk.mutate({ act: "failed", some: failed })}
        >
          {`${words.rerun} (${failed.length})`}
        </Button>
      )}
      {mayStart && ended.length > 0 && (
        <Button
          variant="default"
          size="compact-xs"
          leftSection={<IconRepeat size={14} />}
          loading={bulk.isPending}
          onClick={() => bulk.mutate({ act: "all", some: ended })}
        >
          {`${words.rerunAll} (${ended.length})`}
        </Button>
      )}
      {runs.length === 2 && first !== undefined && second !== undefined && (
        <Button
          variant="default"
          size="compact-xs"
          leftSection={<IconArrowsDiff size={14} />}
          onClick={() =>
            void navigate({ to: "/runs/compare", search: { first: first.runId, second: second.runId } })
          }
        >
          {words.compare}
        </Button>
      )}
    </div>
  );
}
