import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client";
import { Panel } from "../../app/PanelStates";
import type { SnapshotNode } from "../../model/run/events";
import { texts } from "../../texts";
import { Nothing } from "../Panel";
import { NodeList } from "./ItemsView";

interface Props {
  readonly runId: string;
  readonly nodeId: string;
  readonly scope: string | undefined;
  /** Of an item of a map: which. */
  readonly item: number | undefined;
  readonly seen: string;
}

/** The steps inside of a container or of a called workflow. */
export function InsideView({ runId, nodeId, scope, item, seen }: Props) {
  const query = useQuery({
    queryKey: ["run-inside", runId, nodeId, scope ?? "", item ?? -1, seen],
    queryFn: async () =>
      dataOf(
        await api.GET("/api/v1/runs/{runId}/nodes/{nodeId}/body", {
          params: {
            path: { runId, nodeId },
            query: { ...(scope === undefined ? {} : { scope }), ...(item === undefined ? {} : { item }) },
          },
        }),
      ).nodes,
    placeholderData: (before) => before,
  });
  return (
    <Panel query={query}>
      {(nodes) =>
        nodes.length === 0 ? (
          <Nothing title={texts.runView.step.noItems} />
        ) : (
          <NodeList nodes={nodes as unknown as readonly SnapshotNode[]} />
        )
      }
    </Panel>
  );
}
