/** Where the frames of groups are, and what moves with them. */

import type { NodeChange, NodePositionChange } from "@xyflow/react";
import type { Position } from "../model/definition";
import type { Size } from "../model/sizes";
import type { FlowNode, FrameFlowNode } from "./flow";
import { drawnNodes } from "./gestures";

const PAD = { top: 48, side: 24, bottom: 24 } as const;

const isFrame = (node: FlowNode): node is FrameFlowNode => node.type === "frame";

type Frame = Position & Size;

/** By the ids of groups; one whose steps are not there has none. */
function framesOf(nodes: readonly FlowNode[]): ReadonlyMap<string, Frame> {
  const drawn = new Map(drawnNodes(nodes).map((node) => [node.id, node]));
  const frames = new Map<string, Frame>();
  for (const node of nodes) {
    if (!isFrame(node)) continue;
    const boxes = node.data.members.flatMap((id) => drawn.get(id) ?? []);
    if (boxes.length === 0) continue;
    const x = Math.min(...boxes.map((box) => box.x)) - PAD.side;
    const y = Math.min(...boxes.map((box) => box.y)) - PAD.top;
    const width = Math.max(...boxes.map((box) => box.x + box.width)) + PAD.side - x;
    const height = Math.max(...boxes.map((box) => box.y + box.height)) + PAD.bottom - y;
    frames.set(node.id, { x, y, width, height });
  }
  return frames;
}

/** The nodes with the frames around their steps as they are drawn just now, also while somebody drags one. */
export function withFrames(nodes: readonly FlowNode[]): readonly FlowNode[] {
  if (!nodes.some(isFrame)) return nodes;
  const frames = framesOf(nodes);
  return nodes.map((node) => {
    const frame = frames.get(node.id);
    if (frame === undefined) return node;
    const { x, y, width, height } = frame;
    return { ...node, position: { x, y }, width, height };
  });
}

/** A frame that is moved moves its steps instead: it follows them. */
export function carried(changes: NodeChange<FlowNode>[], nodes: readonly FlowNode[]): NodeChange<FlowNode>[] {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const isOfFrame = (change: NodeChange<FlowNode>): change is NodePositionChange => {
    const node = change.type === "position" ? byId.get(change.id) : undefined;
    return node !== undefined && isFrame(node);
  };
  if (!changes.some(isOfFrame)) return changes;
  const frames = framesOf(nodes);
  const made: NodeChange<FlowNode>[] = changes.filter((change) => !isOfFrame(change));
  const moved = new Set(made.flatMap((change) => (change.type === "position" ? [change.id] : [])));
  for (const change of changes.filter(isOfFrame)) {
    const [frame, node] = [frames.get(change.id), byId.get(change.id)];
    if (frame === undefined || change.position === undefined || node === undefined || !isFrame(node))
      continue;
    const by = { x: change.position.x - frame.x, y: change.position.y - frame.y };
    for (const id of node.data.members) {
      const member = byId.get(id);
      // One that is selected, too, is moved by itself.
      if (member === undefined || moved.has(id)) continue;
      moved.add(id);
      const position = { x: member.position.x + by.x, y: member.position.y + by.y };
      made.push({ id, type: "position", position, dragging: change.dragging ?? false });
    }
  }
  return made;
}

/** A drag has ended: its nodes, and for frames the steps that came along. */
export function draggedSteps(nodes: readonly FlowNode[], dragged: readonly FlowNode[]): readonly FlowNode[] {
  const changes = dragged.map(
    ({ id, position }): NodeChange<FlowNode> => ({ id, type: "position", position, dragging: false }),
  );
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const fresh = new Map(dragged.map((node) => [node.id, node]));
  return carried(changes, nodes).flatMap((change) => {
    if (change.type !== "position") return [];
    const node = fresh.get(change.id) ?? byId.get(change.id);
    return node === undefined ? [] : [{ ...node, position: change.position ?? node.position } as FlowNode];
  });
}
