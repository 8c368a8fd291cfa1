import { Button, Select } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, dataOf } from "../../api/client";
import { Panel } from "../../app/PanelStates";
import { StateMark } from "../../canvas/StateMark";
import type { NodeStatus, SnapshotNode } from "../../model/run/events";
import { newNode, stepState } from "../../model/run/state";
import { texts } from "../../texts";
import { between, formatDuration } from "../../values/format";
import { Nothing } from "../Panel";
import { useDefinition, useSelectStep } from "../runPage";
import classes from "../shared.module.css";

const STATUSES = ["failed", "running", "succeeded", "skipped", "cancelled"] as const;
type Shown = (typeof STATUSES)[number];

interface Props {
  readonly runId: string;
  readonly nodeId: string;
  readonly scope: string | undefined;
  /** Something has changed when this has. */
  readonly seen: string;
}

/** The items of a map, page by page. */
export function ItemsView({ runId, nodeId, scope, seen }: Props) {
  const words = texts.runView.step;
  const [status, setStatus] = useState<Shown | null>(null);
  const query = useInfiniteQuery({
    queryKey: ["run-items", runId, nodeId, scope ?? "", status, seen],
    queryFn: async ({ pageParam }) =>
      dataOf(
        await api.GET("/api/v1/runs/{runId}/nodes/{nodeId}/items", {
          params: {
            path: { runId, nodeId },
            query: {
              limit: 100,
              ...(pageParam === "" ? {} : { cursor: pageParam }),
              ...(scope === undefined ? {} : { scope }),
              ...(status === null ? {} : { status }),
            },
          },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (last) => last.nextCursor,
    placeholderData: (before) => before,
  });
  return (
    <div>
      <Select
        aria-label={words.filterItems}
        placeholder={words.allItems}
        clearable
        data={STATUSES.map((one) => ({ value: one, label: texts.stepState[one] }))}
        value={status}
        onChange={(next) => setStatus(next as Shown | null)}
        w={160}
        mb={8}
      />
      <Panel query={query}>
        {({ pages }) => {
          const items = pages.flatMap((page) => page.items);
          if (items.length === 0) return <Nothing title={words.noItems} />;
          return <NodeList nodes={items as unknown as readonly ListedNode[]} />;
        }}
      </Panel>
      {query.hasNextPage && (
        <Button
          variant="default"
          mt={8}
          loading={query.isFetchingNextPage}
          onClick={() => void query.fetchNextPage()}
        >
          {words.loadMore}
        </Button>
      )}
    </div>
  );
}

interface ListedNode extends SnapshotNode {
  readonly item?: number;
}

/** Steps that are inside of another one; a click goes there. */
export function NodeList({ nodes }: { readonly nodes: readonly ListedNode[] }) {
  const select = useSelectStep();
  const { labelOf } = useDefinition();
  return (
    <ul className={classes.rowButtons}>
      {nodes.map((node) => {
        const took = between(node.startedAt, node.finishedAt, Date.now());
        const state = stepState({ ...newNode(node.nodeId, null), status: node.status as NodeStatus });
        return (
          <li key={`${node.scopePath ?? ""}/${node.nodeId}`}>
            <button type="button" onClick={() => select(node.nodeId, node.scopePath ?? null)}>
              <StateMark state={state} size={14} />
              <span>
                {node.item === undefined ? labelOf(node.nodeId) : texts.runView.step.openItem(node.item)}
              </span>
              <small>{node.error?.message ?? ""}</small>
              <span className={classes.number}>{took === null ? "" : formatDuration(took)}</span>
            </button>
          </li>
        );
      })}
    </ul>
  );
}
