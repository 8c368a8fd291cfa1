/**
 * A document as React Flow draws it. What did not change is the same object as before, so that a view of 500 nodes
 * draws again only what was edited.
 */

import type { Edge, Node } from "@xyflow/react";
import type { NodeCatalog, NodeType } from "../model/catalog";
import {
  type CanvasGroup,
  type CanvasNote,
  CONTAINER_TYPE,
  type EdgeDefinition,
  type NodeDefinition,
  type Position,
} from "../model/definition";
import { edgesOf, groupsOf, nodesOf, notesOf, type WorkflowDocument } from "../model/document";
import { type NodePorts, portsOf } from "../model/ports";
import { BOX_BORDER, EMPTY_BOX, type Size, sizeWith } from "../model/sizes";
import { innerPort } from "../model/wiring";
import { texts } from "../texts";

export interface StepData extends Record<string, unknown> {
  readonly node: NodeDefinition;
  readonly type: NodeType | undefined;
  readonly ports: NodePorts;
  /** The middlewares around it, outermost first: they are drawn on it. */
  readonly chain: readonly NodeDefinition[];
}

export interface NoteData extends Record<string, unknown> {
  readonly note: CanvasNote;
}

/** A group: a frame around steps. Where it is follows from where they are (`frames.ts`). */
export interface FrameData extends Record<string, unknown> {
  readonly group: CanvasGroup;
  /** Its steps that are drawn, without those inside of others of them. */
  readonly members: readonly string[];
}

export interface WireData extends Record<string, unknown> {
  readonly edge: EdgeDefinition;
  readonly kind: "data" | "control" | "error";
}

export type StepFlowNode = Node<StepData, "step" | "container">;
export type NoteFlowNode = Node<NoteData, "note">;
export type FrameFlowNode = Node<FrameData, "frame">;
export type FlowNode = StepFlowNode | NoteFlowNode | FrameFlowNode;
export type WireEdge = Edge<WireData, "wire">;

export interface Flow {
  readonly nodes: readonly FlowNode[];
  readonly edges: readonly WireEdge[];
}

/** Notes stay below the steps, also when they are selected, which lifts them by 1000. */
const BELOW = -2000;
/** Groups are above notes, and below steps; inside of a container above that. */
const BEHIND = -1500;

export const sourceHandle = (edge: EdgeDefinition): string => edge.source.port ?? "done";
export const targetHandle = (edge: EdgeDefinition): string => edge.target.port ?? "trigger";

/** The id of an edge on the canvas: that which it has, else what it connects, which is once in a valid document. */
export function edgeId(edge: EdgeDefinition): string {
  return edge.id ?? `${edge.source.node}:${sourceHandle(edge)}>${edge.target.node}:${targetHandle(edge)}`;
}

interface Frame {
  readonly position: Position;
  readonly width: number;
  readonly height: number;
}

/** Maps one document after the other. */
export class FlowMapper {
  private nodes = new Map<string, FlowNode>();
  private edges = new Map<string, WireEdge>();
  private before: { document: WorkflowDocument; catalog: NodeCatalog; flow: Flow } | null = null;

  map(document: WorkflowDocument, catalog: NodeCatalog): Flow {
    if (this.before?.document === document && this.before.catalog === catalog) return this.before.flow;
    const flow = { nodes: this.mapNodes(document, catalog), edges: this.mapEdges(document) };
    this.nodes = new Map(flow.nodes.map((node) => [node.id, node]));
    this.edges = new Map(flow.edges.map((edge) => [edge.id, edge]));
    this.before = { document, catalog, flow };
    return flow;
  }

  private mapNodes(document: WorkflowDocument, catalog: NodeCatalog): FlowNode[] {
    const all = nodesOf(document);
    const byId = new Map(all.map((node) => [node.id, node]));
    const wrapping = new Set(all.flatMap((node) => node.middlewares ?? []));
    const drawn = all.filter((node) => !wrapping.has(node.id));
    const frames = framesOf(drawn, byId, (node) => this.sizeOf(node, catalog));
    const made: FlowNode[] = [];
    // A container stands before what is in it: React Flow asks for that.
    for (const node of drawn.toSorted((one, other) => depthOf(one, byId) - depthOf(other, byId))) {
      const chain = (node.middlewares ?? []).flatMap((id) => byId.get(id) ?? []);
      made.push(this.step(node, chain, catalog, byId, frames));
    }
    for (const note of notesOf(document)) made.push(this.note(note));
    for (const group of groupsOf(document)) {
      const frame = this.frame(group, byId, drawn);
      if (frame !== null) made.push(frame);
    }
    return made;
  }

  private sizeOf(node: NodeDefinition, catalog: NodeCatalog): Size {
    const known = this.nodes.get(node.id) as StepFlowNode | undefined;
    const type = typeOf(node, catalog);
    const isSame = known?.data.node === node && known.data.type === type;
    return sizeWith(isSame ? known.data.ports : portsOf(node, type));
  }

  private step(
    node: NodeDefinition,
    chain: readonly NodeDefinition[],
    catalog: NodeCatalog,
    byId: ReadonlyMap<string, NodeDefinition>,
    frames: ReadonlyMap<string, Frame>,
  ): FlowNode {
    const type = typeOf(node, catalog);
    const frame = frames.get(node.id);
    const parent = parentOf(node, byId);
    const outer = parent === null ? undefined : frames.get(parent);
    const at = frame?.position ?? positionOf(node);
    const position = { x: at.x - (outer?.position.x ?? 0), y: at.y - (outer?.position.y ?? 0) };
    const known = this.nodes.get(node.id) as StepFlowNode | undefined;
    const isSame =
      known !== undefined &&
      known.data.node === node &&
      known.data.type === type &&
      known.parentId === (parent ?? undefined) &&
      known.position.x === position.x &&
      known.position.y === position.y &&
      known.width === frame?.width &&
      known.height === frame?.height &&
      chain.length === known.data.chain.length &&
      chain.every((one, place) => one === known.data.chain[place]);
    if (isSame) return known;
    return {
      id: node.id,
      type: frame === undefined ? "step" : "container",
      position,
      data: { node, type, ports: portsOf(node, type), chain },
      ariaLabel: node.label ?? type?.label ?? node.type,
      ...(parent === null ? {} : { parentId: parent }),
      ...(frame === undefined ? {} : { width: frame.width, height: frame.height }),
    };
  }

  private note(note: CanvasNote): FlowNode {
    const known = this.nodes.get(note.id) as NoteFlowNode | undefined;
    if (known?.data.note === note) return known;
    const { id, position, width, height } = note;
    return {
      id,
      type: "note",
      position,
      width,
      height,
      data: { note },
      zIndex: BELOW,
      ariaLabel: texts.canvas.note,
    };
  }

  /** None without a step that is drawn: there is no place for it. */
  private frame(
    group: CanvasGroup,
    byId: ReadonlyMap<string, NodeDefinition>,
    drawn: readonly NodeDefinition[],
  ): FlowNode | null {
    const ids = new Set(Array.isArray(group.nodes) ? group.nodes : []);
    const steps = drawn.filter((node) => ids.has(node.id) && !isWithin(node, ids, byId));
    if (typeof group.id !== "string" || steps.length === 0) return null;
    const members = steps.map((node) => node.id);
    const isInBox = steps.some((node) => parentOf(node, byId) !== null);
    const known = this.nodes.get(group.id) as FrameFlowNode | undefined;
    const zIndex = isInBox ? 0 : BEHIND;
    const isSame =
      known?.data.group === group &&
      known.zIndex === zIndex &&
      known.data.members.length === members.length &&
      members.every((id, place) => id === known.data.members[place]);
    if (isSame) return known;
    return {
      id: group.id,
      type: "frame",
      position: { x: 0, y: 0 },
      data: { group, members },
      zIndex,
      // Only the title takes the pointer: behind it are steps and the canvas.
      style: { pointerEvents: "none" },
      ariaLabel: texts.canvas.group(group.label, members.length),
    };
  }

  private mapEdges(document: WorkflowDocument): WireEdge[] {
    const parents = new Map(nodesOf(document).map((node) => [node.id, node.parent]));
    return edgesOf(document).map((edge) => {
      const id = edgeId(edge);
      const known = this.edges.get(id);
      const handle = sourceHandle(edge);
      const { source, target } = edge;
      // At the border of a container an edge ends at the port as it is seen from the inside.
      const isIn = parents.get(target.node) === source.node;
      const isOut = parents.get(source.node) === target.node;
      const handles = {
        sourceHandle: isIn ? innerPort(handle) : handle,
        targetHandle: isOut ? innerPort(targetHandle(edge)) : targetHandle(edge),
      };
      const isSame =
        known?.data?.edge === edge &&
        known.sourceHandle === handles.sourceHandle &&
        known.targetHandle === handles.targetHandle;
      if (isSame) return known;
      const kind = handle === "error" ? "error" : edge.target.port ? "data" : "control";
      return {
        id,
        type: "wire",
        source: source.node,
        target: target.node,
        ...handles,
        data: { edge, kind },
      };
    });
  }
}

function typeOf(node: NodeDefinition, catalog: NodeCatalog): NodeType | undefined {
  const found = catalog.find(node.type, node.package?.name, node.package?.version);
  return typeof found === "object" ? found : undefined;
}

function isWithin(
  node: NodeDefinition,
  ids: ReadonlySet<string>,
  byId: ReadonlyMap<string, NodeDefinition>,
): boolean {
  const parent = parentOf(node, byId);
  if (parent === null) return false;
  return ids.has(parent) || isWithin(byId.get(parent) as NodeDefinition, ids, byId);
}

export const positionOf = (node: NodeDefinition): Position => node.position ?? { x: 0, y: 0 };

/** The container that a node is drawn in; none for what is inside of itself in the end. */
function parentOf(node: NodeDefinition, byId: ReadonlyMap<string, NodeDefinition>): string | null {
  const parent = outerOf(node, byId);
  const seen = new Set([node.id]);
  for (let at = parent; at !== undefined; at = outerOf(at, byId)) {
    if (seen.has(at.id)) return null;
    seen.add(at.id);
  }
  return parent?.id ?? null;
}

function outerOf(
  node: NodeDefinition,
  byId: ReadonlyMap<string, NodeDefinition>,
): NodeDefinition | undefined {
  const parent = node.parent == null ? undefined : byId.get(node.parent);
  return parent?.type === CONTAINER_TYPE ? parent : undefined;
}

function depthOf(node: NodeDefinition, byId: ReadonlyMap<string, NodeDefinition>): number {
  const parent = parentOf(node, byId);
  return parent === null ? 0 : 1 + depthOf(byId.get(parent) as NodeDefinition, byId);
}

/** The frames of containers: around what is in them, the innermost first. */
function framesOf(
  drawn: readonly NodeDefinition[],
  byId: ReadonlyMap<string, NodeDefinition>,
  sizeOf: (node: NodeDefinition) => Size,
): Map<string, Frame> {
  const frames = new Map<string, Frame>();
  const boxes = drawn.filter((node) => node.type === CONTAINER_TYPE);
  const inside = new Map<string, NodeDefinition[]>();
  for (const node of drawn) {
    const parent = parentOf(node, byId);
    if (parent !== null) inside.set(parent, [...(inside.get(parent) ?? []), node]);
  }
  for (const box of boxes.toSorted((one, other) => depthOf(other, byId) - depthOf(one, byId))) {
    const own = positionOf(box);
    const members = inside.get(box.id) ?? [];
    if (members.length === 0) {
      frames.set(box.id, { position: own, ...EMPTY_BOX });
      continue;
    }
    let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
    for (const member of members) {
      const frame = frames.get(member.id);
      const at = frame?.position ?? positionOf(member);
      left = Math.min(left, at.x);
      top = Math.min(top, at.y);
      const size = frame ?? sizeOf(member);
      right = Math.max(right, at.x + size.width);
      bottom = Math.max(bottom, at.y + size.height);
    }
    const position = { x: left - BOX_BORDER.side, y: top - BOX_BORDER.top };
    frames.set(box.id, {
      position,
      width: Math.max(EMPTY_BOX.width, right + BOX_BORDER.side - position.x),
      height: Math.max(EMPTY_BOX.height, bottom + BOX_BORDER.bottom - position.y),
    });
  }
  return frames;
}
