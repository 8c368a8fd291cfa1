import { Button, Progress, Select, Table } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { api, dataOf } from "../../api/client";
import type { components } from "../../api/schema";
import { tellDone, useAction } from "../../app/actions";
import { Panel } from "../../app/PanelStates";
import { useMay } from "../../app/session";
import { texts } from "../../texts";
import classes from "../ops.module.css";
import { More, usePages } from "../pages";
import { StateDot } from "../parts";
import { type Install, useInstalls } from "./installs";

type Package = components["schemas"]["Package"];
type Worker = components["schemas"]["Worker"];

const words = texts.operations.packages;

/** Which workers have which versions, what is being installed, and a way to install one. */
export function PackageInstalls({ one }: { readonly one: Package }) {
  const installs = useInstalls(one.name);
  const query = usePages<Worker>(["workers", "installs"], async (cursor) =>
    dataOf(
      await api.GET("/api/v1/workers", { params: { query: { limit: 200, ...(cursor ? { cursor } : {}) } } }),
    ),
  );
  return (
    <>
      <Panel query={query}>
        {(workers) => {
          const online = workers.filter((worker) => worker.status !== "offline" && worker.status !== "lost");
          if (online.length === 0) return <span className={classes.dim}>{words.noWorkers}</span>;
          return (
            <Table verticalSpacing={4}>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>{words.worker}</Table.Th>
                  <Table.Th>{words.installed}</Table.Th>
                  <Table.Th aria-label={texts.operations.actions} />
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {online.map((worker) => (
                  <WorkerRow key={worker.workerId} worker={worker} one={one} installs={installs} />
                ))}
              </Table.Tbody>
            </Table>
          );
        }}
      </Panel>
      <More query={query} />
    </>
  );
}

interface RowProps {
  readonly worker: Worker;
  readonly one: Package;
  readonly installs: ReadonlyMap<string, Install>;
}

function WorkerRow({ worker, one, installs }: RowProps) {
  const has = worker.packages.filter((installed) => installed.name === one.name);
  const under = [...installs.values()].filter(
    (install) =>
      install.workerId === worker.workerId &&
      (install.status === "downloading" || install.status === "installing"),
  );
  const failed = [...installs.values()].filter(
    (install) => install.workerId === worker.workerId && install.status === "failed",
  );
  return (
    <Table.Tr>
      <Table.Td>
        <Link to="/workers" search={{ worker: worker.workerId }}>
          {worker.name}
        </Link>
      </Table.Td>
      <Table.Td>
        <span className={classes.chips}>
          {has.length === 0 && under.length === 0 && (
            <span className={classes.dim}>{words.notInstalled}</span>
          )}
          {has.map((installed) => (
            <span key={installed.version} className={classes.chip}>
              {installed.version}
            </span>
          ))}
        </span>
        {under.map((install) => (
          <span key={install.version} className={classes.meter}>
            <Progress
              value={100 * (install.progress ?? 1)}
              animated={install.progress == null}
              w={96}
              size="sm"
              aria-label={words.installing(install.version)}
            />
            {words.installing(install.version)}
          </span>
        ))}
        {failed.map((install) => (
          <StateDot key={install.version} tone="bad">
            {words.installFailed(install.version, messageOf(install.details))}
          </StateDot>
        ))}
      </Table.Td>
      <Table.Td>
        <InstallForm worker={worker} one={one} installed={has.map((installed) => installed.version)} />
      </Table.Td>
    </Table.Tr>
  );
}

function messageOf(details: unknown): string {
  const message = (details as { message?: unknown } | null)?.message;
  return typeof message === "string" ? message : "";
}

interface FormProps {
  readonly worker: Worker;
  readonly one: Package;
  readonly installed: readonly string[];
}

function InstallForm({ worker, one, installed }: FormProps) {
  const mayOperate = useMay("operate");
  const open = one.versions.filter(
    (version) => version.yankedAt == null && !installed.includes(version.version),
  );
  const [chosen, setChosen] = useState<string | null>(null);
  const version = chosen ?? open[0]?.version ?? null;
  const install = useAction<string>({
    run: async (wanted) =>
      dataOf(
        await api.POST("/api/v1/workers/{id}/commands", {
          params: { path: { id: worker.workerId } },
          body: { type: "pkg.install", name: one.name, version: wanted },
        }),
      ),
    changes: ["workers"],
    failed: words.installNotSent,
    done: (_, wanted) => tellDone(words.installSent(one.name, wanted, worker.name)),
  });
  if (!mayOperate || version === null) return null;
  return (
    <span className={classes.rowForm}>
      <Select
        w={110}
        aria-label={words.versionFor(worker.name)}
        data={open.map((each) => each.version)}
        value={version}
        allowDeselect={false}
        onChange={setChosen}
      />
      <Button variant="default" loading={install.isPending} onClick={() => install.mutate(version)}>
        {words.install}
      </Button>
    </span>
  );
}
