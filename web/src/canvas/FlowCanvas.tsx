import "@xyflow/react/dist/style.css";
import {
  Background,
  Controls,
  MiniMap,
  ReactFlow,
  ReactFlowProvider,
  useOnViewportChange,
} from "@xyflow/react";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import type { NodeCatalog } from "../model/catalog";
import type { WorkflowDocument } from "../model/document";
import { texts } from "../texts";
import { ContainerNode } from "./ContainerNode";
import classes from "./canvas.module.css";
import { FrameNode } from "./FrameNode";
import { type Flow, FlowMapper, type FlowNode, type StepFlowNode, type WireEdge } from "./flow";
import { draggedSteps, withFrames } from "./frames";
import { type CanvasEdits, moveOf } from "./gestures";
import { NoteNode } from "./NoteNode";
import { StepNode } from "./StepNode";
import { useSelecting } from "./selecting";
import { Wire } from "./Wire";
import { WireHint } from "./WireHint";
import { useWires } from "./wires";

const NODE_TYPES = { step: StepNode, container: ContainerNode, note: NoteNode, frame: FrameNode };
const EDGE_TYPES = { wire: Wire };
const MINI = { width: 144, height: 96 } as const;
/** Below it ports cannot be read: a step has its icon and its name, larger. */
const SMALL = 0.55;
/** Below it names cannot be read, either: steps are blocks in the colour of their state, or of their type. */
const TINY = 0.28;

interface Props {
  readonly document: WorkflowDocument;
  readonly catalog: NodeCatalog;
  readonly selection: ReadonlySet<string>;
  readonly onSelect: (ids: readonly string[]) => void;
  /** Missing: the canvas is read-only. */
  readonly edits?: CanvasEdits | undefined;
  /** Somebody moves or zooms the canvas; the canvas itself does not count. */
  readonly onHandMove?: (() => void) | undefined;
  readonly children?: ReactNode;
}

/** Nodes as they are drawn now: those of the document, with what React Flow has measured of them. */
function merged(before: readonly FlowNode[], flow: Flow, selection: ReadonlySet<string>): FlowNode[] {
  const known = new Map(before.map((node) => [node.id, node]));
  return flow.nodes.map((node) => {
    const drawn = known.get(node.id);
    const selected = selection.has(node.id);
    const isSame =
      drawn !== undefined &&
      drawn.data === node.data &&
      drawn.position === node.position &&
      drawn.parentId === node.parentId &&
      (drawn.selected ?? false) === selected;
    if (isSame) return drawn;
    return { ...node, selected, ...(drawn?.measured ? { measured: drawn.measured } : {}) };
  });
}

type Detail = "tiny" | "small" | undefined;

const detailAt = (zoom: number): Detail => (zoom < TINY ? "tiny" : zoom < SMALL ? "small" : undefined);

function useDetail(): Detail {
  const [detail, setDetail] = useState<Detail>();
  useOnViewportChange({ onChange: ({ zoom }) => setDetail(detailAt(zoom)) });
  return detail;
}

const isStep = (node: FlowNode): node is StepFlowNode => node.type === "step" || node.type === "container";

const colorOf = (node: FlowNode): string =>
  (isStep(node) ? node.data.type?.color : undefined) ?? "var(--state-not-run)";

/** The graph of a workflow: to edit, to read, or with a run on it (`RunProvider`). */
export function FlowCanvas(props: Props) {
  return (
    <ReactFlowProvider>
      <Canvas {...props} />
    </ReactFlowProvider>
  );
}

function Canvas({ document, catalog, selection, onSelect, edits, onHandMove, children }: Props) {
  const mapper = useRef<FlowMapper>(null);
  mapper.current ??= new FlowMapper();
  const flow = mapper.current.map(document, catalog);
  const [nodes, setNodes] = useState<FlowNode[]>(() => merged([], flow, selection));
  useEffect(() => setNodes((before) => merged(before, flow, selection)), [flow, selection]);
  const shown = useMemo(() => withFrames(nodes), [nodes]);
  const edges = useMemo(
    () => flow.edges.map((edge) => (selection.has(edge.id) ? { ...edge, selected: true } : edge)),
    [flow, selection],
  );
  const changes = useSelecting(flow, selection, onSelect, setNodes);
  const wires = useWires(document, catalog, edits);
  const detail = useDetail();
  return (
    <div className={classes.canvas} data-detail={detail}>
      <ReactFlow<FlowNode, WireEdge>
        nodes={shown as FlowNode[]}
        edges={edges as WireEdge[]}
        nodeTypes={NODE_TYPES}
        edgeTypes={EDGE_TYPES}
        {...changes}
        {...wires}
        onNodeDragStop={(_, __, dragged) => edits?.onMove(moveOf(nodes, draggedSteps(nodes, dragged)))}
        onMove={(event) => event !== null && onHandMove?.()}
        nodesDraggable={edits !== undefined}
        nodesConnectable={edits !== undefined}
        edgesReconnectable={edits !== undefined}
        edgesFocusable={false}
        disableKeyboardA11y
        deleteKeyCode={null}
        selectionKeyCode="Shift"
        multiSelectionKeyCode={["Shift", "Meta", "Control"]}
        zoomOnDoubleClick={edits === undefined}
        onlyRenderVisibleElements={nodes.length > 200}
        minZoom={0.1}
        maxZoom={2}
        snapToGrid
        snapGrid={[8, 8]}
        fitView
        fitViewOptions={{ maxZoom: 1, padding: 0.08 }}
        aria-label={texts.canvas.label}
      >
        <Background gap={24} size={1} />
        <MiniMap
          pannable
          style={MINI}
          zoomable
          nodeClassName={(node) => (node.type === "frame" ? classes.miniFrame : classes.mini) ?? ""}
          nodeColor={colorOf}
          ariaLabel={texts.canvas.minimap}
        />
        <Controls showInteractive={false} />
        {edits !== undefined && <WireHint />}
        {children}
      </ReactFlow>
    </div>
  );
}
