import { Button, Drawer, Group, Table } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { api, dataOf } from "../../api/client";
import type { components } from "../../api/schema";
import { useAction } from "../../app/actions";
import { Time } from "../../app/ListPage";
import { Panel } from "../../app/PanelStates";
import { useMay } from "../../app/session";
import { texts } from "../../texts";
import { shortId } from "../../values/format";
import classes from "../ops.module.css";
import { CommandLine, Facts, StateDot, type Tone } from "../parts";
import { Condition, type Trigger } from "./TriggersPage";

type Fire = components["schemas"]["TriggerFire"];

const words = texts.operations.triggers;
const TONES: Record<Fire["outcome"], Tone> = {
  started: "good",
  pending: "busy",
  skipped: "quiet",
  refused: "bad",
};

interface Props {
  readonly trigger: Trigger | null;
  readonly workflowName: string;
  readonly onClose: () => void;
}

/** One trigger: when it fires next, its address, and what it has fired. */
export function TriggerDrawer({ trigger, workflowName, onClose }: Props) {
  return (
    <Drawer
      opened={trigger !== null}
      onClose={onClose}
      position="right"
      size={560}
      title={trigger?.id ?? ""}
      closeButtonProps={{ "aria-label": texts.close }}
    >
      {trigger !== null && (
        <>
          <Facts
            rows={[
              [words.type, words.types[trigger.type]],
              [words.firesAt, <Condition key="at" trigger={trigger} />],
              [texts.columns.workflow, workflowName],
              [words.state, trigger.enabled ? words.isEnabled : words.isDisabled],
            ]}
          />
          <RunNow trigger={trigger} />
          {trigger.hookPath !== undefined && <Address path={trigger.hookPath} />}
          {trigger.enabled && <NextTimes times={trigger.nextTimes ?? []} />}
          <History trigger={trigger} />
        </>
      )}
    </Drawer>
  );
}

function RunNow({ trigger }: { readonly trigger: Trigger }) {
  const mayStart = useMay("start");
  const navigate = useNavigate();
  const run = useAction({
    run: async () =>
      dataOf(
        await api.POST("/api/v1/workflows/{id}/triggers/{triggerId}/run", {
          params: { path: { id: trigger.workflowId, triggerId: trigger.id } },
          body: { inputs: {} },
        }),
      ),
    changes: ["runs", "triggers"],
    failed: words.runFailed,
    done: ({ runId }) => void navigate({ to: "/runs/$runId", params: { runId } }),
  });
  if (!mayStart) return null;
  return (
    <Group mt="md">
      <Button loading={run.isPending} onClick={() => run.mutate()}>
        {words.runNow}
      </Button>
    </Group>
  );
}

function Address({ path }: { readonly path: string }) {
  const url = `${location.origin}${path}`;
  return (
    <section className={classes.section}>
      <h3>{words.address}</h3>
      <CommandLine text={url} label={words.copyAddress} />
      <p className={classes.dim}>{words.addressHint}</p>
      <CommandLine text={`curl -X POST -H 'content-type: application/json' -d '{}' ${url}`} />
    </section>
  );
}

function NextTimes({ times }: { readonly times: readonly string[] }) {
  if (times.length === 0) return null;
  return (
    <section className={classes.section}>
      <h3>{words.nextTimes}</h3>
      <ol className={classes.list}>
        {times.slice(0, 5).map((time) => (
          <li key={time}>
            <Time at={time} />
          </li>
        ))}
      </ol>
    </section>
  );
}

function History({ trigger }: { readonly trigger: Trigger }) {
  const query = useQuery({
    queryKey: ["triggers", "history", trigger.workflowId, trigger.id],
    queryFn: async () =>
      dataOf(
        await api.GET("/api/v1/workflows/{id}/triggers/{triggerId}/history", {
          params: { path: { id: trigger.workflowId, triggerId: trigger.id } },
        }),
      ).items,
    refetchInterval: 10_000,
  });
  return (
    <section className={classes.section}>
      <h3>{words.history}</h3>
      <Panel query={query}>
        {(fires) =>
          fires.length === 0 ? (
            <span className={classes.dim}>{words.neverFired}</span>
          ) : (
            <Table verticalSpacing={4}>
              <Table.Tbody>
                {fires.map((fire) => (
                  <Table.Tr key={fire.number}>
                    <Table.Td>
                      <StateDot tone={TONES[fire.outcome]}>{words.outcomes[fire.outcome]}</StateDot>
                      {fire.reason !== undefined && <div className={classes.dim}>{fire.reason}</div>}
                    </Table.Td>
                    <Table.Td>{words.causes[fire.cause]}</Table.Td>
                    <Table.Td>
                      <Time at={fire.at} />
                    </Table.Td>
                    <Table.Td>
                      {fire.runId !== undefined && (
                        <Link
                          to="/runs/$runId"
                          params={{ runId: fire.runId }}
                          className={classes.idLink ?? ""}
                        >
                          {shortId(fire.runId)}
                        </Link>
                      )}
                    </Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          )
        }
      </Panel>
    </section>
  );
}
