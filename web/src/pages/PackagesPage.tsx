import { IconPackage } from "@tabler/icons-react";
import { api, dataOf } from "../api/client";
import { type Column, ListPage } from "../app/ListPage";
import { texts } from "../texts";

const load = async () => [...dataOf(await api.GET("/api/v1/packages")).items];
type Row = Awaited<ReturnType<typeof load>>[number];

const COLUMNS: readonly Column<Row>[] = [
  { label: texts.columns.name, cell: (row) => row.name },
  { label: texts.columns.version, cell: (row) => row.active },
  { label: texts.columns.description, cell: (row) => row.description },
];

export function PackagesPage() {
  const words = texts.pages.packages;
  return (
    <ListPage
      name="packages"
      words={words}
      icon={IconPackage}
      columns={COLUMNS}
      keyOf={(row) => row.name}
      load={load}
    />
  );
}
