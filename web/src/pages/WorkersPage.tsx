import { ActionIcon, CopyButton, Tooltip } from "@mantine/core";
import { IconCheck, IconCopy, IconServer2 } from "@tabler/icons-react";
import { api, dataOf } from "../api/client";
import classes from "../app/frame.module.css";
import { type Column, ListPage, Time } from "../app/ListPage";
import { texts } from "../texts";

const load = async () => [...dataOf(await api.GET("/api/v1/workers")).items];
type Row = Awaited<ReturnType<typeof load>>[number];

const COLUMNS: readonly Column<Row>[] = [
  { label: texts.columns.status, cell: (row) => texts.workerStatus[row.status] },
  { label: texts.columns.name, cell: (row) => row.name },
  { label: texts.columns.slots, cell: (row) => `${row.inflight}/${row.maxParallel}` },
  { label: texts.columns.host, cell: (row) => row.hostname },
  { label: texts.columns.heartbeat, cell: (row) => <Time at={row.lastHeartbeatAt} /> },
];

function StartCommand() {
  const command = texts.workerCommand(`${location.origin.replace(/^http/, "ws")}/ws/worker`);
  return (
    <div className={classes.command}>
      <code>{command}</code>
      <CopyButton value={command}>
        {({ copied, copy }) => {
          const label = copied ? texts.copied : texts.copy;
          return (
            <Tooltip label={label}>
              <ActionIcon variant="subtle" color="gray" aria-label={label} onClick={copy}>
                {copied ? <IconCheck size={14} /> : <IconCopy size={14} />}
              </ActionIcon>
            </Tooltip>
          );
        }}
      </CopyButton>
    </div>
  );
}

export function WorkersPage() {
  const words = texts.pages.workers;
  return (
    <ListPage
      name="workers"
      words={words}
      icon={IconServer2}
      columns={COLUMNS}
      keyOf={(row) => row.workerId}
      load={load}
      emptyAction={<StartCommand />}
    />
  );
}
