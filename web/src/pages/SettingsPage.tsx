import { Anchor, Table, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { readSession } from "../api/client";
import classes from "../app/frame.module.css";
import { texts } from "../texts";

/** Who is logged in. */
export function SettingsPage() {
  const { data } = useQuery({ queryKey: ["session"], queryFn: readSession });
  const rows = data
    ? [
        [texts.session.user, data.subject],
        [texts.session.role, data.role],
        [texts.session.tenant, data.tenant],
      ]
    : [];
  return (
    <div className={classes.page}>
      <div className={classes.header}>
        <Title order={1}>{texts.pages.settings.title}</Title>
      </div>
      <Table className={classes.table} verticalSpacing={4} variant="vertical" w={420}>
        <Table.Tbody>
          {rows.map(([label, value]) => (
            <Table.Tr key={label}>
              <Table.Th w={120}>{label}</Table.Th>
              <Table.Td>{value}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      <p>
        <Anchor href="/api/docs">{texts.session.apiDocs}</Anchor>
      </p>
    </div>
  );
}
