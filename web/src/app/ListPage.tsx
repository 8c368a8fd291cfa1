import { Button, Skeleton, Table, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ComponentType, type ReactNode, useEffect, useState } from "react";
import { ApiError } from "../api/client";
import { texts } from "../texts";
import classes from "./frame.module.css";

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

const SKELETON_AFTER_MS = 150;

function useIsLate(): boolean {
  const [isLate, setIsLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setIsLate(true), SKELETON_AFTER_MS);
    return () => clearTimeout(timer);
  }, []);
  return isLate;
}

function Loading() {
  const rows = ["a", "b", "c", "d"];
  return useIsLate() ? (
    <div className={classes.rows} aria-busy="true">
      {rows.map((row) => (
        <Skeleton key={row} height={20} />
      ))}
    </div>
  ) : null;
}

function Failure({ error, retry }: { readonly error: Error; readonly retry: () => void }) {
  const request = error instanceof ApiError ? error.requestId : null;
  return (
    <div className={classes.empty} role="alert">
      <Title order={2}>{texts.failed.list}</Title>
      <div className={classes.hint}>{error.message}</div>
      {request !== null && <code>{texts.failed.request(request)}</code>}
      <Button onClick={retry}>{texts.failed.retry}</Button>
    </div>
  );
}

/** A page with a table: empty, loading, failed, or with rows. */
export function ListPage<Row>({ name, words, icon: Icon, columns, keyOf, load, emptyAction }: Props<Row>) {
  const { data, error, refetch } = useQuery({ queryKey: [name], queryFn: load });
  return (
    <div className={classes.page}>
      <div className={classes.header}>
        <Title order={1}>{words.title}</Title>
        {data !== undefined && data.length > 0 && <span className={classes.hint}>{data.length}</span>}
      </div>
      {data === undefined && error === null && <Loading />}
      {data === undefined && error !== null && <Failure error={error} retry={() => void refetch()} />}
      {data?.length === 0 && (
        <div className={classes.empty}>
          <Icon size={36} stroke={1.25} className={classes.icon} />
          <Title order={2}>{words.empty}</Title>
          <div className={classes.hint}>{words.hint}</div>
          {emptyAction}
        </div>
      )}
      {data !== undefined && data.length > 0 && (
        <Table className={classes.table} verticalSpacing={4} highlightOnHover>
          <Table.Thead>
            <Table.Tr>
              {columns.map((column) => (
                <Table.Th key={column.label}>{column.label}</Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {data.map((row) => (
              <Table.Tr key={keyOf(row)}>
                {columns.map((column) => (
                  <Table.Td key={column.label}>{column.cell(row)}</Table.Td>
                ))}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </div>
  );
}

/** A time as people here write it, with UTC beside it. */
export function Time({ at }: { readonly at: string | null | undefined }) {
  if (at == null) return null;
  return (
    <time dateTime={at} title={at}>
      {new Date(at).toLocaleString([], { dateStyle: "medium", timeStyle: "short" })}
    </time>
  );
}
