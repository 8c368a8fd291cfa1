/** Wires that somebody drags: which ports they fit, and what becomes of them. */

import type { Connection, FinalConnectionState, HandleType, OnConnectStartParams } from "@xyflow/react";
import { useContext, useMemo, useRef } from "react";
import type { NodeCatalog } from "../model/catalog";
import type { WorkflowDocument } from "../model/document";
import { endAt, type OpenEnd, Wiring } from "../model/wiring";
import { DecorContext } from "./decor";
import type { WireEdge } from "./flow";
import type { CanvasEdits } from "./gestures";

type PointerLike = MouseEvent | TouchEvent;

const placeOf = (event: PointerLike): { x: number; y: number } => {
  const at = "changedTouches" in event ? event.changedTouches[0] : event;
  return { x: at?.clientX ?? 0, y: at?.clientY ?? 0 };
};

const openEnd = (params: OnConnectStartParams): OpenEnd | null =>
  params.nodeId === null || params.handleType === null
    ? null
    : { node: params.nodeId, port: params.handleId ?? "", side: params.handleType };

export function useWires(document: WorkflowDocument, catalog: NodeCatalog, edits: CanvasEdits | undefined) {
  const decor = useContext(DecorContext);
  const latest = useRef({ document, catalog, edits });
  latest.current = { document, catalog, edits };
  const reconnecting = useRef<string | null>(null);
  const isEditable = edits !== undefined;
  return useMemo(() => {
    if (!isEditable) return {};
    return {
      onConnectStart: (_: PointerLike, params: OnConnectStartParams): void => {
        const open = openEnd(params);
        const wiring = new Wiring(latest.current.document, latest.current.catalog);
        if (open !== null) decor?.setState({ wire: { open, wiring } });
      },
      onConnectEnd: (event: PointerLike, state: FinalConnectionState): void => {
        const open = decor?.getState().wire?.open;
        decor?.setState({ wire: null });
        const isOnPane = state.toNode === null && state.toHandle === null;
        if (open !== undefined && isOnPane && reconnecting.current === null)
          latest.current.edits?.onWireDropped(open, placeOf(event));
      },
      onConnect: (connection: Connection): void => latest.current.edits?.onConnect(connection),
      onReconnectStart: (_: unknown, edge: WireEdge): void => {
        reconnecting.current = edge.id;
      },
      onReconnect: (edge: WireEdge, connection: Connection): void => {
        reconnecting.current = null;
        latest.current.edits?.onReconnect(edge.id, connection);
      },
      onReconnectEnd: (_: unknown, edge: WireEdge, __: HandleType, state: FinalConnectionState): void => {
        if (reconnecting.current !== null && state.toNode === null)
          latest.current.edits?.onReconnect(edge.id, null);
        reconnecting.current = null;
      },
      isValidConnection: ({ source, target, sourceHandle, targetHandle }: Connection | WireEdge): boolean => {
        const wiring =
          decor?.getState().wire?.wiring ?? new Wiring(latest.current.document, latest.current.catalog);
        return wiring.check(endAt(source, sourceHandle ?? ""), endAt(target, targetHandle ?? "")).fits;
      },
    };
  }, [decor, isEditable]);
}
