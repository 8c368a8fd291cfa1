/** The selection belongs to the page: React Flow tells what somebody did, and is told what is selected. */

import { applyNodeChanges, type EdgeChange, type NodeChange } from "@xyflow/react";
import { type Dispatch, type SetStateAction, useMemo, useRef } from "react";
import type { Flow, FlowNode, WireEdge } from "./flow";
import { carried } from "./frames";

type Change = NodeChange<FlowNode> | EdgeChange<WireEdge>;

export function useSelecting(
  flow: Flow,
  selection: ReadonlySet<string>,
  onSelect: (ids: readonly string[]) => void,
  setNodes: Dispatch<SetStateAction<FlowNode[]>>,
) {
  const latest = useRef({ flow, selection, onSelect });
  latest.current = { flow, selection, onSelect };
  return useMemo(() => {
    const choose = (changes: readonly Change[]): void => {
      const picks = changes.filter((change) => change.type === "select");
      if (picks.length === 0) return;
      const { flow: drawn, selection: before } = latest.current;
      // What is not drawn by itself, as a middleware, cannot be left by a click elsewhere.
      const visible = new Set([...drawn.nodes, ...drawn.edges].map((one) => one.id));
      const next = new Set([...before].filter((id) => visible.has(id)));
      for (const pick of picks) {
        if (pick.selected) next.add(pick.id);
        else next.delete(pick.id);
      }
      latest.current = { ...latest.current, selection: next };
      latest.current.onSelect([...next]);
    };
    return {
      onNodesChange: (changes: NodeChange<FlowNode>[]): void => {
        const others = changes.filter((change) => change.type !== "select" && change.type !== "remove");
        if (others.length > 0) setNodes((before) => applyNodeChanges(carried(others, before), before));
        choose(changes);
      },
      onEdgesChange: (changes: EdgeChange<WireEdge>[]): void => choose(changes),
      onPaneClick: (): void => latest.current.onSelect([]),
    };
  }, [setNodes]);
}
