import { Table, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ComponentType, ReactNode } from "react";
import { formatDate } from "../values/format";
import classes from "./frame.module.css";
import { Empty, Panel } from "./PanelStates";

export interface Column<Row> {
  readonly label: string;
  readonly cell: (row: Row) => ReactNode;
}

interface Props<Row> {
  /** The key of the query: events of this kind fetch it anew. */
  readonly name: string;
  readonly words: { readonly title: string; readonly empty: string; readonly hint: string };
  readonly icon: ComponentType<{ size: number; stroke: number; className?: string | undefined }>;
  readonly columns: readonly Column<Row>[];
  readonly keyOf: (row: Row) => string;
  readonly load: () => Promise<readonly Row[]>;
  readonly emptyAction?: ReactNode;
}

/** A page with a table: empty, loading, failed, or with rows. */
export function ListPage<Row>({ name, words, icon, columns, keyOf, load, emptyAction }: Props<Row>) {
  const query = useQuery({ queryKey: [name], queryFn: load });
  const count = query.data?.length ?? 0;
  return (
    <div className={classes.page}>
      <div className={classes.header}>
        <Title order={1}>{words.title}</Title>
        {count > 0 && <span className={classes.hint}>{count}</span>}
      </div>
      <Panel query={query}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty icon={icon} title={words.empty} hint={words.hint}>
              {emptyAction}
            </Empty>
          ) : (
            <Rows columns={columns} rows={rows} keyOf={keyOf} />
          )
        }
      </Panel>
    </div>
  );
}

interface RowsProps<Row> {
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  /** What a click on a row opens. A cell should have a link or a button with the same effect. */
  readonly onOpen?: (row: Row) => void;
}

export function Rows<Row>({ columns, rows, keyOf, onOpen }: RowsProps<Row>) {
  return (
    <Table className={classes.table} verticalSpacing={4} highlightOnHover>
      <Table.Thead>
        <Table.Tr>
          {columns.map((column) => (
            <Table.Th key={column.label}>{column.label}</Table.Th>
          ))}
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {rows.map((row) => (
          <Table.Tr
            key={keyOf(row)}
            {...(onOpen === undefined ? {} : { onClick: () => onOpen(row), style: { cursor: "pointer" } })}
          >
            {columns.map((column) => (
              <Table.Td key={column.label}>{column.cell(row)}</Table.Td>
            ))}
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

/** A time as people here write it, with UTC beside it. */
export function Time({ at }: { readonly at: string | null | undefined }) {
  if (at == null) return null;
  return (
    <time dateTime={at} title={at}>
      {formatDate(at)}
    </time>
  );
}
