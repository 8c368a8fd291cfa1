/** Adding a step: where it goes, what it is wired to, and which types can be wired to a port at all. */

import type { NodeCatalog, NodeType } from "../model/catalog";
import type { EdgeEnd, NodeDefinition, Position } from "../model/definition";
import { edgesOf, nodesOf, type WorkflowDocument } from "../model/document";
import { connect, insertOnEdge } from "../model/edits/edges";
import { addMiddleware, addNode } from "../model/edits/nodes";
import type { JsonFields } from "../model/json/tree";
import { type Port, portsOf } from "../model/ports";
import { mayFit } from "../model/schemaTypes";
import { USUAL_SIZE } from "../model/sizes";
import { endAt, type OpenEnd, Wiring } from "../model/wiring";

export interface NewStep {
  readonly id: string;
  readonly type: NodeType;
  readonly at: Position;
  readonly parent?: string | null;
}

const COLUMN = USUAL_SIZE.width + 80;
const ROW = USUAL_SIZE.height + 40;

/** What a type of the scheduler needs beside its parameters, or the document is not valid. */
const SETTINGS: Readonly<Record<string, JsonFields>> = {
  "core.wait": { wait: { seconds: 10 } },
  "core.approval": { approval: { message: "Please approve" } },
  "core.signal": { signal: { name: "continue" } },
};

/** A label that no other step has: expressions name steps by it. */
export function freeLabel(document: WorkflowDocument, label: string): string {
  const taken = new Set(nodesOf(document).map((node) => node.label));
  if (!taken.has(label)) return label;
  for (let number = 2; ; number += 1) if (!taken.has(`${label} ${number}`)) return `${label} ${number}`;
}

export function addStep(document: WorkflowDocument, step: NewStep): WorkflowDocument {
  const { id, type, at, parent } = step;
  const settings = SETTINGS[type.type];
  return addNode(document, {
    id,
    type: type.type,
    label: freeLabel(document, type.label),
    position: at,
    ...(type.package.name === "core" ? {} : { package: { ...type.package } }),
    ...(parent == null ? {} : { parent }),
    ...(settings === undefined ? {} : { settings }),
  });
}

/** A free place to the right of a step, or below everything that stands there. */
export function placeAfter(document: WorkflowDocument, after: NodeDefinition): Position {
  const from = after.position ?? { x: 0, y: 0 };
  const at = { x: from.x + COLUMN, y: from.y };
  const isTaken = (): boolean =>
    nodesOf(document).some(
      ({ position }) =>
        position != null &&
        Math.abs(position.x - at.x) < USUAL_SIZE.width + 16 &&
        Math.abs(position.y - at.y) < USUAL_SIZE.height + 8,
    );
  while (isTaken()) at.y += ROW;
  return at;
}

/** Outputs in the order in which they are tried: those of cases, then data, then the end of the step. */
function orderedOutputs(ports: ReadonlyMap<string, Port>): readonly Port[] {
  const all = [...ports.values()];
  return [
    ...all.filter((port) => port.isCase),
    ...all.filter((port) => port.kind === "data" && !port.isCase && !port.isImplied),
    ...all.filter((port) => port.key === "done"),
  ];
}

/** Wire one step to another by the first ports that fit: data before order. */
export function wireFirst(
  document: WorkflowDocument,
  catalog: NodeCatalog,
  source: string,
  target: string,
): WorkflowDocument {
  const wiring = new Wiring(document, catalog);
  let byOrder: { from: EdgeEnd; to: EdgeEnd } | null = null;
  for (const port of orderedOutputs(wiring.portsOf(source)?.outputs ?? new Map())) {
    const from = endAt(source, port.key);
    const to = wiring.firstFit(from, target);
    if (to === null) continue;
    if (to.port != null || port.isCase) return connect(document, { source: from, target: to });
    byOrder = { from, to };
  }
  return byOrder === null ? document : connect(document, { source: { node: source }, target: byOrder.to });
}

/** Add a step after another one and wire both. */
export function addAfter(
  document: WorkflowDocument,
  catalog: NodeCatalog,
  step: Omit<NewStep, "at">,
  after: NodeDefinition,
): WorkflowDocument {
  const at = placeAfter(document, after);
  const added = addStep(document, { ...step, at, parent: after.parent ?? null });
  return wireFirst(added, catalog, after.id, step.id);
}

/** Add a step where a wire was dropped, and wire it to the other end. */
export function addForWire(
  document: WorkflowDocument,
  catalog: NodeCatalog,
  step: NewStep,
  open: OpenEnd,
): WorkflowDocument {
  const parent = nodesOf(document).find((node) => node.id === open.node)?.parent ?? null;
  const added = addStep(document, { ...step, parent });
  const wiring = new Wiring(added, catalog);
  if (open.side === "source") {
    const source = endAt(open.node, open.port);
    const target = wiring.firstFit(source, step.id);
    return target === null ? added : connect(added, { source, target });
  }
  const target = endAt(open.node, open.port);
  for (const port of orderedOutputs(wiring.portsOf(step.id)?.outputs ?? new Map())) {
    const source = endAt(step.id, port.key);
    const verdict = wiring.check(source, target);
    if (verdict.fits) return connect(added, { source, target }, { replaces: verdict.replaces });
  }
  return added;
}

/** Put a new step into the middle of an edge: by data where it fits on both sides, else by order. */
export function addOnEdge(
  document: WorkflowDocument,
  catalog: NodeCatalog,
  step: NewStep,
  place: number,
): WorkflowDocument {
  const edge = edgesOf(document)[place];
  if (edge === undefined) return addStep(document, step);
  const parent = nodesOf(document).find((node) => node.id === edge.source.node)?.parent ?? null;
  const added = addStep(document, { ...step, parent });
  const wiring = new Wiring(added, catalog);
  const input = wiring.firstFit(edge.source, step.id)?.port;
  const output = orderedOutputs(wiring.portsOf(step.id)?.outputs ?? new Map()).find(
    (port) => wiring.check(endAt(step.id, port.key), edge.target).fits,
  )?.key;
  return insertOnEdge(added, place, step.id, {
    ...(input == null ? {} : { input }),
    ...(output === undefined || output === "done" ? {} : { output }),
  });
}

/** A middleware is no step of its own: it goes around one, innermost. */
export function addAround(
  document: WorkflowDocument,
  step: Omit<NewStep, "at">,
  host: NodeDefinition,
): WorkflowDocument {
  const at = host.position ?? { x: 0, y: 0 };
  return addMiddleware(addStep(document, { ...step, at }), host.id, step.id, host.middlewares?.length ?? 0);
}

/** The types that have a port for the other end of a wire. */
export function fittingTypes(
  document: WorkflowDocument,
  catalog: NodeCatalog,
  open: OpenEnd,
): readonly NodeType[] {
  const ports = new Wiring(document, catalog).portsOf(open.node);
  const mine = open.side === "source" ? ports?.outputs.get(open.port) : ports?.inputs.get(open.port);
  if (mine === undefined) return [];
  return catalog.all
    .filter((type) => {
      if (type.middleware) return false;
      const other = portsOf({ id: "", type: type.type }, type);
      if (open.side === "source") return true;
      return [...other.outputs.values()].some(
        (port) => port.kind !== "error" && (mine.kind !== "data" || mayFit(port.types, mine.types)),
      );
    })
    .toSorted((one, other) => Number(takes(other, mine, open)) - Number(takes(one, mine, open)));
}

/** Whether the data of the wire goes into a port of its own, rather than only being waited for. */
function takes(type: NodeType, mine: Port, open: OpenEnd): boolean {
  if (mine.kind !== "data" || open.side !== "source") return false;
  const { inputs } = portsOf({ id: "", type: type.type }, type);
  return [...inputs.values()].some((port) => port.kind === "data" && mayFit(mine.types, port.types));
}
