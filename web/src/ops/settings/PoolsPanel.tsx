import { Badge, Table } from "@mantine/core";
import { IconCloud } from "@tabler/icons-react";
import { api, dataOf } from "../../api/client";
import type { components } from "../../api/schema";
import { ConfirmButton, useAction } from "../../app/actions";
import { Empty, Panel } from "../../app/PanelStates";
import { useMay } from "../../app/session";
import { texts } from "../../texts";
import classes from "../ops.module.css";
import { More, usePages } from "../pages";
import { CommandLine, Meter } from "../parts";

type Pool = components["schemas"]["HttpPool"];

const words = texts.operations.pools;

/** The pools of serverless workers. */
export function PoolsPanel() {
  const query = usePages<Pool>(["pools"], async (cursor) =>
    dataOf(
      await api.GET("/api/v1/pools", { params: { query: { limit: 200, ...(cursor ? { cursor } : {}) } } }),
    ),
  );
  return (
    <>
      <Panel query={query}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty icon={IconCloud} title={words.empty} hint={words.hint}>
              <CommandLine text={words.command} />
            </Empty>
          ) : (
            <Table verticalSpacing={4}>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>{texts.columns.name}</Table.Th>
                  <Table.Th>{words.dispatcher}</Table.Th>
                  <Table.Th>{words.url}</Table.Th>
                  <Table.Th>{texts.columns.slots}</Table.Th>
                  <Table.Th>{texts.operations.workers.packages}</Table.Th>
                  <Table.Th aria-label={texts.operations.actions} />
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {rows.map((row) => (
                  <PoolRow key={row.name} pool={row} />
                ))}
              </Table.Tbody>
            </Table>
          )
        }
      </Panel>
      <More query={query} />
    </>
  );
}

function PoolRow({ pool }: { readonly pool: Pool }) {
  const mayOperate = useMay("operate");
  const remove = useAction({
    run: async () => api.DELETE("/api/v1/pools/{name}", { params: { path: { name: pool.name } } }),
    changes: ["pools"],
    failed: words.removeFailed,
  });
  return (
    <Table.Tr>
      <Table.Td>
        {pool.name} {pool.isPaused && <Badge size="xs">{words.paused}</Badge>}
      </Table.Td>
      <Table.Td>{words.dispatchers[pool.dispatcher]}</Table.Td>
      <Table.Td className={classes.mono}>{pool.url}</Table.Td>
      <Table.Td>
        <Meter
          label={texts.columns.slots}
          value={pool.inflight}
          of={pool.maxParallel}
          text={`${pool.inflight}/${pool.maxParallel}`}
        />
      </Table.Td>
      <Table.Td>{pool.packages.map((one) => one.name).join(", ")}</Table.Td>
      <Table.Td ta="right">
        {mayOperate && (
          <ConfirmButton
            size="compact-xs"
            label={words.remove}
            title={words.removeTitle(pool.name)}
            body={words.removeBody}
            loading={remove.isPending}
            onConfirm={() => remove.mutate()}
          />
        )}
      </Table.Td>
    </Table.Tr>
  );
}
