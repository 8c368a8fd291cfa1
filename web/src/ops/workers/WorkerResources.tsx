import { Group, Select, Table } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { api, dataOf } from "../../api/client";
import type { components } from "../../api/schema";
import { ConfirmButton, useAction } from "../../app/actions";
import { Time } from "../../app/ListPage";
import { Panel } from "../../app/PanelStates";
import { useMay } from "../../app/session";
import { texts } from "../../texts";
import { formatBytes, shortId } from "../../values/format";
import classes from "../ops.module.css";
import { More, usePages } from "../pages";

type Resource = components["schemas"]["Resource"];

const words = texts.operations.resources;

/** What a worker keeps for runs: who holds it, until when, and a way to keep it longer or to close it. */
export function WorkerResources({ workerId }: { readonly workerId: string }) {
  const query = usePages<Resource>(["resources", workerId], async (cursor) =>
    dataOf(
      await api.GET("/api/v1/resources", {
        params: { query: { workerId, state: "ready", ...(cursor ? { cursor } : {}) } },
      }),
    ),
  );
  return (
    <section className={classes.section}>
      <h3>{words.title}</h3>
      <Panel query={query}>
        {(rows) =>
          rows.length === 0 ? (
            <span className={classes.dim}>{words.none}</span>
          ) : (
            <Table verticalSpacing={4}>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>{words.type}</Table.Th>
                  <Table.Th>{words.holder}</Table.Th>
                  <Table.Th>{words.size}</Table.Th>
                  <Table.Th>{words.until}</Table.Th>
                  <Table.Th aria-label={words.actions} />
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {rows.map((row) => (
                  <ResourceRow key={row.resourceId} row={row} />
                ))}
              </Table.Tbody>
            </Table>
          )
        }
      </Panel>
      <More query={query} />
    </section>
  );
}

const EXTENSIONS = [
  { value: "600", label: words.minutes(10) },
  { value: "3600", label: words.hours(1) },
  { value: "86400", label: words.hours(24) },
] as const;

function ResourceRow({ row }: { readonly row: Resource }) {
  const mayOperate = useMay("operate");
  const params = { path: { id: row.resourceId }, query: { workerId: row.workerId } };
  const close = useAction({
    run: async () => api.DELETE("/api/v1/resources/{id}", { params }),
    changes: ["resources"],
    failed: words.closeFailed,
  });
  const extend = useAction<number>({
    run: async (ttlSeconds) =>
      dataOf(await api.PATCH("/api/v1/resources/{id}", { params, body: { ttlSeconds } })),
    changes: ["resources"],
    failed: words.extendFailed,
  });
  return (
    <Table.Tr>
      <Table.Td title={row.resourceId}>{row.type}</Table.Td>
      <Table.Td>
        {row.runId == null ? (
          row.package
        ) : (
          <Link to="/runs/$runId" params={{ runId: row.runId }} className={classes.idLink ?? ""}>
            {shortId(row.runId)}
          </Link>
        )}
      </Table.Td>
      <Table.Td>{row.sizeBytes == null ? "–" : formatBytes(row.sizeBytes)}</Table.Td>
      <Table.Td>{row.expiresAt == null ? words.noEnd : <Time at={row.expiresAt} />}</Table.Td>
      <Table.Td>
        {mayOperate && (
          <Group gap={4} wrap="nowrap" justify="flex-end">
            <Select
              size="xs"
              w={104}
              placeholder={words.extend}
              aria-label={words.extend}
              data={EXTENSIONS}
              value={null}
              onChange={(value) => value !== null && extend.mutate(Number(value))}
            />
            <ConfirmButton
              size="compact-xs"
              label={words.close}
              title={words.closeTitle(row.type)}
              body={words.closeBody}
              loading={close.isPending}
              onConfirm={() => close.mutate()}
            />
          </Group>
        )}
      </Table.Td>
    </Table.Tr>
  );
}
