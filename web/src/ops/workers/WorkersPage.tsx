import { Button, Popover, Select, TextInput, Title } from "@mantine/core";
import { IconSearch, IconServer2 } from "@tabler/icons-react";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { api, dataOf } from "../../api/client";
import type { components } from "../../api/schema";
import { type Column, Rows } from "../../app/ListPage";
import { Empty, Panel } from "../../app/PanelStates";
import { texts } from "../../texts";
import classes from "../ops.module.css";
import { More, usePages } from "../pages";
import { Ago, CommandLine, Meter, StateDot, type Tone } from "../parts";
import { type Load, useLoads } from "./loads";
import { readWorkersSearch, WORKER_STATUSES, type WorkerStatus, type WorkersSearch } from "./search";
import { WorkerDrawer } from "./WorkerDrawer";

type Worker = components["schemas"]["Worker"];

const words = texts.operations.workers;

export const WORKER_TONES: Record<WorkerStatus, Tone> = {
  online: "good",
  degraded: "warn",
  draining: "busy",
  lost: "bad",
  offline: "quiet",
};

function columnsOf(loads: ReadonlyMap<string, Load>, open: (id: string) => void): Column<Worker>[] {
  return [
    {
      label: texts.columns.status,
      cell: (row) => <StateDot tone={WORKER_TONES[row.status]}>{texts.workerStatus[row.status]}</StateDot>,
    },
    {
      label: texts.columns.name,
      cell: (row) => (
        <button type="button" className={classes.link} onClick={() => open(row.workerId)}>
          {row.name}
        </button>
      ),
    },
    {
      label: texts.columns.slots,
      cell: (row) => {
        const load = loads.get(row.workerId);
        const [used, all] = [load?.inflight ?? row.inflight, load?.maxParallel ?? row.maxParallel];
        return <Meter label={texts.columns.slots} value={used} of={all} text={`${used}/${all}`} />;
      },
    },
    { label: words.packages, cell: (row) => <PackageChips packages={row.packages} /> },
    { label: texts.columns.host, cell: (row) => row.hostname },
    { label: texts.columns.version, cell: (row) => row.version },
    { label: texts.columns.heartbeat, cell: (row) => <Ago at={row.lastHeartbeatAt} /> },
  ];
}

const SHOWN_PACKAGES = 3;

function PackageChips({ packages }: { readonly packages: Worker["packages"] }) {
  const names = [...new Set(packages.map((one) => one.name))];
  const rest = names.length - SHOWN_PACKAGES;
  return (
    <span className={classes.chips} title={names.join(", ")}>
      {names.slice(0, SHOWN_PACKAGES).map((name) => (
        <span key={name} className={classes.chip}>
          {name}
        </span>
      ))}
      {rest > 0 && <span className={classes.dim}>+{rest}</span>}
    </span>
  );
}

const startCommand = (): string => texts.workerCommand(`${location.origin.replace(/^http/, "ws")}/ws/worker`);

function HowToStart() {
  return (
    <Popover position="bottom-end" withArrow shadow="md" trapFocus>
      <Popover.Target>
        <Button variant="default">{words.howToStart}</Button>
      </Popover.Target>
      <Popover.Dropdown>
        <p className={classes.dim}>{texts.pages.workers.hint}</p>
        <CommandLine text={startCommand()} />
        <p className={classes.dim}>{words.tokenHint}</p>
      </Popover.Dropdown>
    </Popover>
  );
}

function Summary({ workers }: { readonly workers: readonly Worker[] }) {
  const counts = WORKER_STATUSES.map(
    (status) => [status, workers.filter((one) => one.status === status).length] as const,
  );
  const told = counts.filter(([, count]) => count > 0);
  return (
    <span className={classes.dim}>
      {told.map(([status, count]) => words.count(count, texts.workerStatus[status])).join(" · ")}
    </span>
  );
}

export function WorkersPage() {
  const search = useSearch({ from: "/workers" });
  const navigate = useNavigate({ from: "/workers" });
  const set = (change: Partial<Record<keyof WorkersSearch, string | undefined>>): void =>
    void navigate({ search: (before) => readWorkersSearch({ ...before, ...change }), replace: true });
  const { text, status } = search;
  const query = usePages<Worker>(["workers", "list", text, status], async (cursor) =>
    dataOf(
      await api.GET("/api/v1/workers", {
        params: {
          query: { ...(text ? { text } : {}), ...(status ? { status } : {}), ...(cursor ? { cursor } : {}) },
        },
      }),
    ),
  );
  const loads = useLoads();
  const isFiltered = text !== undefined || status !== undefined;
  return (
    <div className={classes.page}>
      <div className={classes.head}>
        <Title order={1}>{texts.pages.workers.title}</Title>
        <Summary workers={query.data ?? []} />
        <HowToStart />
      </div>
      <div className={classes.filters}>
        <TextInput
          leftSection={<IconSearch size={14} />}
          placeholder={words.find}
          aria-label={words.find}
          defaultValue={text ?? ""}
          onChange={(event) => set({ text: event.currentTarget.value })}
        />
        <Select
          placeholder={words.anyStatus}
          aria-label={texts.columns.status}
          clearable
          data={WORKER_STATUSES.map((one) => ({ value: one, label: texts.workerStatus[one] }))}
          value={status ?? null}
          onChange={(value) => set({ status: value ?? undefined })}
        />
      </div>
      <Panel query={query}>
        {(rows) => {
          if (rows.length > 0)
            return (
              <Rows
                columns={columnsOf(loads, (worker) => set({ worker }))}
                rows={rows}
                keyOf={(row) => row.workerId}
                onOpen={(row) => set({ worker: row.workerId })}
              />
            );
          if (isFiltered)
            return (
              <Empty icon={IconSearch} title={words.noMatch}>
                <Button variant="default" onClick={() => set({ text: undefined, status: undefined })}>
                  {texts.operations.clearFilters}
                </Button>
              </Empty>
            );
          return (
            <Empty icon={IconServer2} title={texts.pages.workers.empty} hint={texts.pages.workers.hint}>
              <CommandLine text={startCommand()} />
              <div className={classes.dim}>{words.waitsForFirst}</div>
            </Empty>
          );
        }}
      </Panel>
      <More query={query} />
      <WorkerDrawer workerId={search.worker ?? null} onClose={() => set({ worker: undefined })} />
    </div>
  );
}
