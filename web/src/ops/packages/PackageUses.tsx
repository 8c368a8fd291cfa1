import { Table } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useEffect } from "react";
import { api, dataOf } from "../../api/client";
import type { components } from "../../api/schema";
import { Time } from "../../app/ListPage";
import { Failure, Loading, Panel } from "../../app/PanelStates";
import { texts } from "../../texts";
import classes from "../ops.module.css";
import { More, usePages } from "../pages";

type Workflow = components["schemas"]["WorkflowSummary"];

const words = texts.operations.packages;
const PAGE = 50;

/** The workflows whose newest version has a step of a package. */
export function PackageUses({ name }: { readonly name: string }) {
  const query = usePages<Workflow>(["workflows", "uses", name], async (cursor) =>
    dataOf(
      await api.GET("/api/v1/workflows", {
        params: { query: { package: name, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) } },
      }),
    ),
  );
  const { data, error, hasNextPage, isFetching, fetchNextPage } = query;
  const isSearching = data?.length === 0 && hasNextPage;
  // The scheduler looks at so many workflows a request: a page without any is not the end of the list.
  useEffect(() => {
    if (isSearching && !isFetching && error === null) void fetchNextPage();
  }, [isSearching, isFetching, error, fetchNextPage]);
  if (isSearching && error === null) return <Loading />;
  if (isSearching && error !== null) {
    return <Failure title={texts.failed.panel} error={error} retry={() => void fetchNextPage()} />;
  }
  return (
    <Panel query={query}>
      {(workflows) =>
        workflows.length === 0 ? (
          <span className={classes.dim}>{words.notUsed}</span>
        ) : (
          <>
            <UsesTable workflows={workflows} />
            <More query={query} />
          </>
        )
      }
    </Panel>
  );
}

function UsesTable({ workflows }: { readonly workflows: readonly Workflow[] }) {
  return (
    <Table verticalSpacing={4}>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>{texts.columns.name}</Table.Th>
          <Table.Th>{texts.columns.version}</Table.Th>
          <Table.Th>{texts.columns.changed}</Table.Th>
          <Table.Th>{texts.columns.by}</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {workflows.map((workflow) => (
          <Table.Tr key={workflow.id}>
            <Table.Td>
              <Link to="/workflows/$workflowId" params={{ workflowId: workflow.id }} search={{}}>
                {workflow.name || texts.editor.untitled}
              </Link>
            </Table.Td>
            <Table.Td>{texts.editor.toolbar.version(workflow.version)}</Table.Td>
            <Table.Td>
              <Time at={workflow.updatedAt} />
            </Table.Td>
            <Table.Td>{workflow.updatedBy}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
