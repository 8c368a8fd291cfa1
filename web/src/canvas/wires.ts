/** Wires that somebody drags: which ports they fit, and what becomes of them. */

import type { Connection, FinalConnectionState, HandleType, OnConnectStartParams } from "@xyflow/react";
import { useContext, useEffect, useMemo, useRef } from "react";
import type { NodeCatalog } from "../model/catalog";
import { edgesOf, type WorkflowDocument } from "../model/document";
import { disconnect } from "../model/edits/edges";
import { endAt, type OpenEnd, Wiring } from "../model/wiring";
import { DecorContext, type DecorStore } from "./decor";
import { edgeId, type WireEdge } from "./flow";
import type { CanvasEdits } from "./gestures";

type PointerLike = MouseEvent | TouchEvent;
type Place = { readonly x: number; readonly y: number };

const placeOf = (event: PointerLike): Place => {
  const at = "changedTouches" in event ? event.changedTouches[0] : event;
  return { x: at?.clientX ?? 0, y: at?.clientY ?? 0 };
};

/** The node that is drawn at a place of the window. A finger holds the events of its drag, so that they do not tell. */
const nodeAt = ({ x, y }: Place): string | null =>
  document.elementFromPoint(x, y)?.closest<HTMLElement>(".react-flow__node")?.dataset.id ?? null;

const openEnd = (params: OnConnectStartParams): OpenEnd | null =>
  params.nodeId === null || params.handleType === null
    ? null
    : { node: params.nodeId, port: params.handleId ?? "", side: params.handleType };

const connectionOf = (open: OpenEnd, node: string, port: string): Connection =>
  open.side === "source"
    ? { source: open.node, sourceHandle: open.port, target: node, targetHandle: port }
    : { source: node, sourceHandle: port, target: open.node, targetHandle: open.port };

/** Without the edge whose end is taken elsewhere: its port is free. */
const without = (document: WorkflowDocument, edge: string | null): WorkflowDocument =>
  edge === null
    ? document
    : disconnect(
        document,
        new Set(edgesOf(document).flatMap((one, place) => (edgeId(one) === edge ? [place] : []))),
      );

/** Follows the pointer, as long as a wire is dragged. */
function useOver(decor: DecorStore | null): void {
  useEffect(() => {
    const follow = (event: PointerLike): void => {
      const wire = decor?.getState().wire;
      if (wire == null) return;
      const over = nodeAt(placeOf(event));
      if (over !== wire.over) decor?.setState({ wire: { ...wire, over } });
    };
    // The events that React Flow itself listens to: it begins a wire with the first of them.
    addEventListener("mousemove", follow);
    addEventListener("touchmove", follow);
    return () => {
      removeEventListener("mousemove", follow);
      removeEventListener("touchmove", follow);
    };
  }, [decor]);
}

export function useWires(document: WorkflowDocument, catalog: NodeCatalog, edits: CanvasEdits | undefined) {
  const decor = useContext(DecorContext);
  const latest = useRef({ document, catalog, edits });
  latest.current = { document, catalog, edits };
  const reconnecting = useRef<string | null>(null);
  const isEditable = edits !== undefined;
  useOver(decor);
  return useMemo(() => {
    if (!isEditable) return {};
    /** A wire was dropped beside all ports: on a step, or on nothing. */
    const drop = (at: Place, edge: string | null): void => {
      const wire = decor?.getState().wire;
      const { edits: now } = latest.current;
      if (wire == null || now === undefined) return;
      const node = nodeAt(at);
      const found = wire.wiring.dropOn(wire.open, node);
      if (found.kind === "fits" && node !== null) {
        const connection = connectionOf(wire.open, node, found.port.key);
        if (edge === null) now.onConnect(connection);
        else now.onReconnect(edge, connection);
      } else if (found.kind === "refused") now.onWireRefused(found.reason);
      else if (found.kind === "canvas" && edge === null) now.onWireDropped(wire.open, at);
      else if (found.kind === "canvas" && edge !== null) now.onReconnect(edge, null);
    };
    const isBeside = (state: FinalConnectionState): boolean =>
      state.toNode === null && state.toHandle === null;
    return {
      onConnectStart: (_: PointerLike, params: OnConnectStartParams): void => {
        const open = openEnd(params);
        const { document: now, catalog: types } = latest.current;
        const wiring = new Wiring(without(now, reconnecting.current), types);
        if (open !== null) decor?.setState({ wire: { open, wiring, over: null } });
      },
      onConnectEnd: (event: PointerLike, state: FinalConnectionState): void => {
        if (isBeside(state)) drop(placeOf(event), null);
        decor?.setState({ wire: null });
      },
      onConnect: (connection: Connection): void => latest.current.edits?.onConnect(connection),
      onReconnectStart: (_: unknown, edge: WireEdge): void => {
        reconnecting.current = edge.id;
      },
      onReconnect: (edge: WireEdge, connection: Connection): void => {
        reconnecting.current = null;
        latest.current.edits?.onReconnect(edge.id, connection);
      },
      onReconnectEnd: (
        event: PointerLike,
        edge: WireEdge,
        _: HandleType,
        state: FinalConnectionState,
      ): void => {
        if (reconnecting.current !== null && isBeside(state)) drop(placeOf(event), edge.id);
        reconnecting.current = null;
        // React Flow tells of the begin of it as of any other wire, but not of its end.
        decor?.setState({ wire: null });
      },
      isValidConnection: ({ source, target, sourceHandle, targetHandle }: Connection | WireEdge): boolean => {
        const wiring =
          decor?.getState().wire?.wiring ?? new Wiring(latest.current.document, latest.current.catalog);
        return wiring.check(endAt(source, sourceHandle ?? ""), endAt(target, targetHandle ?? "")).fits;
      },
    };
  }, [decor, isEditable]);
}
