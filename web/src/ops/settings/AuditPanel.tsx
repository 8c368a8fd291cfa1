import { Anchor, Button, Group, Select, Table, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { api, dataOf } from "../../api/client";
import type { components } from "../../api/schema";
import { tellDone, tellError, useAction } from "../../app/actions";
import { Time } from "../../app/ListPage";
import { Panel } from "../../app/PanelStates";
import { texts } from "../../texts";
import classes from "../ops.module.css";
import { More, usePages } from "../pages";

type Entry = components["schemas"]["AuditEntry"];
type Outcome = "ok" | "refused";

const words = texts.operations.audit;
const TYPING_MS = 250;

/** Who did what, newest first. */
export function AuditPanel() {
  const [who, setWho] = useState("");
  const [action, setAction] = useState("");
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const [typed] = useDebouncedValue({ who, action }, TYPING_MS);
  const filters = {
    ...(typed.who === "" ? {} : { who: typed.who }),
    ...(typed.action === "" ? {} : { action: typed.action }),
    ...(outcome === null ? {} : { outcome }),
  };
  const query = usePages<Entry>(["audit", filters], async (cursor) =>
    dataOf(
      await api.GET("/api/v1/audit", {
        params: { query: { limit: 100, ...filters, ...(cursor ? { cursor } : {}) } },
      }),
    ),
  );
  return (
    <>
      <div className={classes.filters}>
        <TextInput
          placeholder={words.who}
          aria-label={words.who}
          value={who}
          onChange={(event) => setWho(event.currentTarget.value)}
        />
        <TextInput
          placeholder={words.action}
          aria-label={words.action}
          value={action}
          onChange={(event) => setAction(event.currentTarget.value)}
        />
        <Select
          placeholder={words.anyOutcome}
          aria-label={words.outcome}
          clearable
          data={[
            { value: "ok", label: words.ok },
            { value: "refused", label: words.refused },
          ]}
          value={outcome}
          onChange={(value) => setOutcome(value as Outcome | null)}
        />
        <Group gap="xs" ml="auto">
          <Verify />
          <Anchor size="sm" href={`/api/v1/audit/export?${new URLSearchParams(filters)}`} download>
            {words.export}
          </Anchor>
        </Group>
      </div>
      <Panel query={query}>
        {(rows) =>
          rows.length === 0 ? <p className={classes.dim}>{words.noMatch}</p> : <Entries rows={rows} />
        }
      </Panel>
      <More query={query} />
    </>
  );
}

function Verify() {
  const verify = useAction({
    run: async () => dataOf(await api.GET("/api/v1/audit/verify")),
    changes: [],
    failed: words.verifyFailed,
    done: (found) => {
      if (found.ok) tellDone(words.verified(found.head));
      else tellError(words.broken, new Error(found.problem ?? ""));
    },
  });
  return (
    <Button variant="default" loading={verify.isPending} onClick={() => verify.mutate()}>
      {words.verify}
    </Button>
  );
}

function detailOf(detail: unknown): string {
  const isEmpty = typeof detail === "object" && detail !== null && Object.keys(detail).length === 0;
  return detail == null || isEmpty ? "" : JSON.stringify(detail);
}

function Entries({ rows }: { readonly rows: readonly Entry[] }) {
  return (
    <Table verticalSpacing={4} mt="xs">
      <Table.Thead>
        <Table.Tr>
          <Table.Th>{words.time}</Table.Th>
          <Table.Th>{words.who}</Table.Th>
          <Table.Th>{words.action}</Table.Th>
          <Table.Th>{words.outcome}</Table.Th>
          <Table.Th>{words.detail}</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {rows.map((row) => (
          <Table.Tr key={row.id}>
            <Table.Td>
              <Time at={row.occurredAt} />
            </Table.Td>
            <Table.Td>{row.who}</Table.Td>
            <Table.Td className={classes.mono}>{row.action}</Table.Td>
            <Table.Td>
              {row.code == null ? words.ok : <span className={classes.error}>{row.code}</span>}
            </Table.Td>
            <Table.Td className={classes.mono} title={row.corr ?? undefined}>
              {detailOf(row.detail)}
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
