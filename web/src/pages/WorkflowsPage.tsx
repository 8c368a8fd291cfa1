import { IconSitemap } from "@tabler/icons-react";
import { api, dataOf } from "../api/client";
import { type Column, ListPage, Time } from "../app/ListPage";
import { texts } from "../texts";

const load = async () => [...dataOf(await api.GET("/api/v1/workflows")).items];
type Row = Awaited<ReturnType<typeof load>>[number];

const COLUMNS: readonly Column<Row>[] = [
  { label: texts.columns.name, cell: (row) => row.name || row.id.slice(0, 8) },
  { label: texts.columns.version, cell: (row) => row.version },
  { label: texts.columns.changed, cell: (row) => <Time at={row.updatedAt} /> },
  { label: texts.columns.by, cell: (row) => row.updatedBy },
];

export function WorkflowsPage() {
  const words = texts.pages.workflows;
  return (
    <ListPage
      name="workflows"
      words={words}
      icon={IconSitemap}
      columns={COLUMNS}
      keyOf={(row) => row.id}
      load={load}
    />
  );
}
