import { IconPlayerPlay } from "@tabler/icons-react";
import { api, dataOf } from "../api/client";
import { type Column, ListPage, Time } from "../app/ListPage";
import { texts } from "../texts";

const load = async () => [...dataOf(await api.GET("/api/v1/runs")).items];
type Row = Awaited<ReturnType<typeof load>>[number];

const COLUMNS: readonly Column<Row>[] = [
  { label: texts.columns.status, cell: (row) => texts.runStatus[row.status] },
  { label: texts.columns.workflow, cell: (row) => row.name ?? row.workflowId?.slice(0, 8) },
  { label: texts.columns.run, cell: (row) => <code title={row.runId}>{row.runId.slice(0, 8)}</code> },
  { label: texts.columns.started, cell: (row) => <Time at={row.startedAt ?? row.createdAt} /> },
];

export function RunsPage() {
  const words = texts.pages.runs;
  return (
    <ListPage
      name="runs"
      words={words}
      icon={IconPlayerPlay}
      columns={COLUMNS}
      keyOf={(row) => row.runId}
      load={load}
    />
  );
}
