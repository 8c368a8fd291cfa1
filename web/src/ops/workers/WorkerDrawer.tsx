import { Alert, Button, Drawer, Group, Table } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api, dataOf } from "../../api/client";
import type { components } from "../../api/schema";
import { ConfirmButton, tellDone, useAction } from "../../app/actions";
import { Panel } from "../../app/PanelStates";
import { useMay } from "../../app/session";
import { texts } from "../../texts";
import { formatBytes, shortId } from "../../values/format";
import classes from "../ops.module.css";
import { Ago, Facts, Meter, ShortId, StateDot } from "../parts";
import { WorkerResources } from "./WorkerResources";
import { WORKER_TONES } from "./WorkersPage";

type Detail = components["schemas"]["WorkerDetail"];
type Command = components["schemas"]["Command"];

const words = texts.operations.workers;

const percent = (part: number | null | undefined): string => (part == null ? "–" : `${Math.round(part)} %`);

interface Props {
  readonly workerId: string | null;
  readonly onClose: () => void;
}

/** All about one worker: what it is, what it does, what it keeps, and what can be told to it. */
export function WorkerDrawer({ workerId, onClose }: Props) {
  return (
    <Drawer
      opened={workerId !== null}
      onClose={onClose}
      position="right"
      size={560}
      title={words.drawer}
      closeButtonProps={{ "aria-label": texts.close }}
    >
      {workerId !== null && <WorkerPanel key={workerId} workerId={workerId} />}
    </Drawer>
  );
}

function WorkerPanel({ workerId }: { readonly workerId: string }) {
  const query = useQuery({
    queryKey: ["workers", "one", workerId],
    queryFn: async () =>
      dataOf(await api.GET("/api/v1/workers/{id}", { params: { path: { id: workerId } } })),
    refetchInterval: 5_000,
  });
  return (
    <Panel query={query}>
      {(worker) => (
        <>
          <Overview worker={worker} />
          <Actions worker={worker} />
          <Attempts worker={worker} />
          <Packages worker={worker} />
          <WorkerResources workerId={workerId} />
        </>
      )}
    </Panel>
  );
}

function Overview({ worker }: { readonly worker: Detail }) {
  const labels = Object.entries(worker.labels);
  const { capacity, reserved } = worker;
  return (
    <Facts
      rows={[
        [
          texts.columns.status,
          <StateDot key="status" tone={WORKER_TONES[worker.status]}>
            {texts.workerStatus[worker.status]}
          </StateDot>,
        ],
        [texts.columns.name, worker.name],
        [words.id, <ShortId key="id" id={worker.workerId} />],
        [texts.columns.host, worker.hostname],
        [texts.columns.version, worker.version],
        [texts.columns.heartbeat, <Ago key="beat" at={worker.lastHeartbeatAt} />],
        [
          texts.columns.slots,
          <Meter
            key="slots"
            label={texts.columns.slots}
            value={worker.inflight}
            of={worker.maxParallel}
            text={`${worker.inflight}/${worker.maxParallel}`}
          />,
        ],
        [words.load, words.loads(percent(worker.cpuPct), percent(worker.memPct), percent(worker.diskPct))],
        ...(capacity == null
          ? []
          : [
              [
                words.reserved,
                words.amounts(
                  `${reserved?.cpu ?? 0}/${capacity.cpu}`,
                  `${formatBytes(reserved?.memoryBytes ?? 0)}/${formatBytes(capacity.memoryBytes)}`,
                  `${reserved?.gpu ?? 0}/${capacity.gpu}`,
                ),
              ] as const,
            ]),
        ...(worker.latencyMs == null ? [] : [[words.latency, `${worker.latencyMs.toFixed(1)} ms`] as const]),
        [words.runtimes, worker.runtimes.join(", ")],
        [
          words.labels,
          labels.length === 0 ? (
            "–"
          ) : (
            <span className={classes.chips} key="labels">
              {labels.map(([key, value]) => (
                <span key={key} className={classes.chip}>
                  {key}={String(value)}
                </span>
              ))}
            </span>
          ),
        ],
      ]}
    />
  );
}

function Actions({ worker }: { readonly worker: Detail }) {
  const mayOperate = useMay("operate");
  const command = useAction<Command>({
    run: async (body) =>
      dataOf(
        await api.POST("/api/v1/workers/{id}/commands", { params: { path: { id: worker.workerId } }, body }),
      ),
    changes: ["workers"],
    failed: words.commandFailed,
    done: (_, sent) => tellDone(words.told[sent.type === "undrain" ? "undrain" : "drain"](worker.name)),
  });
  if (!mayOperate) return null;
  const isAway = worker.status === "offline" || worker.status === "lost";
  const isDraining = worker.drainRequested === true || worker.status === "draining";
  return (
    <>
      {isDraining && (
        <Alert color="yellow" mt="md">
          {isAway ? words.drainedAway : words.drains(worker.inflight)}
        </Alert>
      )}
      <Group gap="xs" mt="md">
        {isDraining ? (
          <Button loading={command.isPending} onClick={() => command.mutate({ type: "undrain" })}>
            {words.undrain}
          </Button>
        ) : (
          <ConfirmButton
            label={words.drain}
            title={words.drainTitle(worker.name)}
            body={words.drainBody}
            disabled={isAway}
            loading={command.isPending}
            onConfirm={() => command.mutate({ type: "drain" })}
          />
        )}
      </Group>
    </>
  );
}

function Attempts({ worker }: { readonly worker: Detail }) {
  return (
    <section className={classes.section}>
      <h3>{words.running(worker.attempts.length)}</h3>
      {worker.attempts.length === 0 ? (
        <span className={classes.dim}>{words.idle}</span>
      ) : (
        <Table verticalSpacing={4}>
          <Table.Tbody>
            {worker.attempts.map((one) => (
              <Table.Tr key={`${one.taskId}:${one.attempt}`}>
                <Table.Td>{one.nodeType}</Table.Td>
                <Table.Td>
                  <Link to="/runs/$runId" params={{ runId: one.runId }} className={classes.idLink ?? ""}>
                    {shortId(one.runId)}
                  </Link>
                </Table.Td>
                <Table.Td>{words.attempt(one.attempt)}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </section>
  );
}

function Packages({ worker }: { readonly worker: Detail }) {
  const mayOperate = useMay("operate");
  const remove = useAction<{ name: string; version: string }>({
    run: async (one) =>
      dataOf(
        await api.POST("/api/v1/workers/{id}/commands", {
          params: { path: { id: worker.workerId } },
          body: { type: "pkg.uninstall", ...one },
        }),
      ),
    changes: ["workers", "packages"],
    failed: words.commandFailed,
  });
  return (
    <section className={classes.section}>
      <h3>{words.packages}</h3>
      <Table verticalSpacing={4}>
        <Table.Tbody>
          {worker.packages.map((one) => (
            <Table.Tr key={`${one.name} ${one.version}`}>
              <Table.Td>
                <Link to="/packages" search={{ package: one.name }}>
                  {one.name}
                </Link>
              </Table.Td>
              <Table.Td className={classes.mono}>{one.version}</Table.Td>
              <Table.Td>{one.status}</Table.Td>
              <Table.Td ta="right">
                {mayOperate && one.name !== "core" && (
                  <ConfirmButton
                    size="compact-xs"
                    label={words.uninstall}
                    title={words.uninstallTitle(one.name, one.version)}
                    body={words.uninstallBody(worker.name)}
                    onConfirm={() => remove.mutate({ name: one.name, version: one.version })}
                  />
                )}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </section>
  );
}
