import { useReactFlow, useStoreApi } from "@xyflow/react";
import { useEffect } from "react";
import type { FlowNode, WireEdge } from "../canvas/flow";
import { drawnNodes } from "../canvas/gestures";
import { nodesOf, notesOf } from "../model/document";
import { USUAL_SIZE } from "../model/sizes";
import { type CanvasHandle, documentOf, type Point, useSession } from "./session";

/** A step that is nearer to the border is brought to the middle. */
const MARGIN = 24;
const SLOW = { duration: 200 } as const;

/** Lets the commands ask the canvas that is drawn around it. */
export function CanvasBridge() {
  const session = useSession();
  const flow = useReactFlow<FlowNode, WireEdge>();
  const store = useStoreApi();
  useEffect(() => {
    const element = (): Element | null => store.getState().domNode;
    let pointer: Point | null = null;
    const canvas = element();
    const stop = new AbortController();
    const { signal } = stop;
    const track = (event: Event): void => {
      const { clientX: x, clientY: y } = event as PointerEvent;
      pointer = { x, y };
    };
    canvas?.addEventListener("pointermove", track, { signal });
    canvas?.addEventListener("pointerleave", () => (pointer = null), { signal });
    const frame = (): DOMRect => element()?.getBoundingClientRect() ?? new DOMRect();
    const handle: CanvasHandle = {
      zoomIn: () => void flow.zoomIn(SLOW),
      zoomOut: () => void flow.zoomOut(SLOW),
      zoomToFull: () => void flow.zoomTo(1, SLOW),
      fit: () => requestAnimationFrame(() => void flow.fitView({ ...SLOW, maxZoom: 1, padding: 0.08 })),
      toFlow: (point) => flow.screenToFlowPosition(point),
      middle: () => ({ x: frame().x + frame().width / 2, y: frame().y + frame().height / 2 }),
      pointer: () => pointer,
      focus: () => {
        const pane = element() as HTMLElement | null;
        if (pane === null) return;
        pane.tabIndex = -1;
        pane.focus({ preventScroll: true });
      },
      drawn: () => drawnNodes(flow.getNodes()),
      reveal: (id) => {
        const document = documentOf(session);
        const found = [...nodesOf(document), ...notesOf(document)].find((one) => one.id === id);
        const at = found?.position;
        if (at == null) return;
        const { x, y, width, height } = frame();
        const corner = flow.flowToScreenPosition(at);
        const zoom = flow.getZoom();
        const isSeen =
          corner.x >= x + MARGIN &&
          corner.y >= y + MARGIN &&
          corner.x + USUAL_SIZE.width * zoom <= x + width - MARGIN &&
          corner.y + USUAL_SIZE.height * zoom <= y + height - MARGIN;
        if (!isSeen)
          void flow.setCenter(at.x + USUAL_SIZE.width / 2, at.y + USUAL_SIZE.height / 2, { ...SLOW, zoom });
      },
    };
    session.canvas.current = handle;
    return () => {
      stop.abort();
      session.canvas.current = null;
    };
  }, [session, flow, store]);
  return null;
}
