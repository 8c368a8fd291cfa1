/** Whether an edge may be drawn, and if not, why: asked for every port while somebody drags a wire. */

import type { NodeCatalog } from "./catalog";
import { CONTAINER_TYPE, type EdgeEnd, type NodeDefinition } from "./definition";
import { edgesOf, nodesOf, type WorkflowDocument } from "./document";
import { type NodePorts, type Port, portsOf } from "./ports";
import { mayFit } from "./schemaTypes";

export type WireVerdict =
  | { readonly fits: true; readonly replaces: boolean }
  | { readonly fits: false; readonly reason: string };

/** One end of a wire that somebody drags. */
export interface OpenEnd {
  readonly node: string;
  readonly port: string;
  /** Whether the wire begins there or ends there. */
  readonly side: "source" | "target";
}

/** What becomes of a wire that is dropped on a step, and not on one of its ports. */
export type WireDrop =
  /** Nothing is there: on the empty canvas, or inside of the container that the wire is in. */
  | { readonly kind: "canvas" }
  /** On the step that the wire begins at: it is given up. */
  | { readonly kind: "back" }
  | { readonly kind: "fits"; readonly port: Port; readonly replaces: boolean }
  | { readonly kind: "refused"; readonly reason: string };

/** A port of a container as it is seen from the inside. */
const INNER = "inside:";
export const innerPort = (port: string): string => `${INNER}${port}`;

/** The end of an edge at a port; those of order need no name. */
export function endAt(node: string, port: string): EdgeEnd {
  if (port.startsWith(INNER)) return { node, port: port.slice(INNER.length) };
  return port === "done" || port === "trigger" ? { node } : { node, port };
}

const refused = (reason: string): WireVerdict => ({ fits: false, reason });
const named = (port: Port): string => [...(port.types ?? [])].sort().join(" or ");

/** What is known of a document when a wire is begun: made once, then asked for each port. */
export class Wiring {
  private readonly nodes: ReadonlyMap<string, NodeDefinition>;
  private readonly ports = new Map<string, NodePorts>();
  private readonly successors = new Map<string, string[]>();
  private readonly taken = new Set<string>();
  private readonly hosts = new Map<string, string>();
  private readonly reached = new Map<string, ReadonlySet<string>>();

  constructor(
    document: WorkflowDocument,
    private readonly catalog: NodeCatalog,
  ) {
    this.nodes = new Map(nodesOf(document).map((node) => [node.id, node]));
    for (const node of this.nodes.values())
      for (const one of node.middlewares ?? []) this.hosts.set(one, node.id);
    for (const edge of edgesOf(document)) {
      if (edge.target.port) this.taken.add(`${edge.target.node} ${edge.target.port}`);
      // An edge at the border of a container brings a value in or out: it orders nothing.
      if (this.borderOf(edge.source.node, edge.target.node) !== null) continue;
      const known = this.successors.get(edge.source.node);
      if (known === undefined) this.successors.set(edge.source.node, [edge.target.node]);
      else known.push(edge.target.node);
    }
  }

  portsOf(id: string): NodePorts | undefined {
    const node = this.nodes.get(id);
    if (node === undefined) return undefined;
    const known = this.ports.get(id);
    if (known !== undefined) return known;
    const found = this.catalog.find(node.type, node.package?.name, node.package?.version);
    const made = portsOf(node, typeof found === "object" ? found : undefined);
    this.ports.set(id, made);
    return made;
  }

  check(source: EdgeEnd, target: EdgeEnd): WireVerdict {
    if (source.node === target.node) return refused("An edge cannot lead from a step to itself");
    const border = this.borderOf(source.node, target.node);
    const [from, to] = [this.portsOf(source.node), this.portsOf(target.node)];
    const read = (border === "in" ? from?.inputs : from?.outputs)?.get(source.port ?? "done");
    const write = (border === "out" ? to?.outputs : to?.inputs)?.get(target.port ?? "trigger");
    if (read === undefined || write === undefined) return refused("There is no such port");
    if (border !== null) return this.checkBorder(source, target, read, write);
    if (this.hosts.has(source.node) || this.hosts.has(target.node)) {
      return refused("A middleware runs with the step that it wraps and has no edges");
    }
    if (this.parentOf(source.node) !== this.parentOf(target.node))
      return refused("The edge would cross the border of a container");
    if (this.isReachable(target.node, source.node)) return refused("The edge would close a circle");
    return this.checkTypes(source, target, read, write);
  }

  /** The same for a wire that is dragged, and a port that it might end at. */
  checkOpen(open: OpenEnd, node: string, port: string): WireVerdict {
    const [one, other] = [endAt(open.node, open.port), endAt(node, port)];
    return open.side === "source" ? this.check(one, other) : this.check(other, one);
  }

  /** Into the container around the target, out of the one around the source, or neither. */
  private borderOf(source: string, target: string): "in" | "out" | null {
    if (this.parentOf(target) === source) return "in";
    return this.parentOf(source) === target ? "out" : null;
  }

  private checkBorder(source: EdgeEnd, target: EdgeEnd, read: Port, write: Port): WireVerdict {
    if (read.kind !== "data" || write.kind !== "data")
      return refused("At the border of a container an edge brings a value");
    return this.checkTypes(source, target, read, write);
  }

  private checkTypes(source: EdgeEnd, target: EdgeEnd, read: Port, write: Port): WireVerdict {
    const isMapped = this.nodes.get(source.node)?.map != null || this.nodes.get(target.node)?.map != null;
    const carries = write.kind === "data" && read.kind !== "error" && !isMapped;
    if (carries && !mayFit(read.types, write.types)) {
      return refused(`This brings ${named(read)}, and the port takes ${named(write)}`);
    }
    const isTaken =
      write.kind === "data" && !write.isMultiple && this.taken.has(`${target.node} ${write.key}`);
    return { fits: true, replaces: isTaken };
  }

  /** A wire is dropped on a step: the first port that it fits takes it, one that is free before one that is taken. */
  dropOn(open: OpenEnd, node: string | null): WireDrop {
    if (node === null || !this.nodes.has(node) || this.isAround(open, node)) return { kind: "canvas" };
    if (node === open.node) return { kind: "back" };
    let taken: WireDrop | null = null;
    let reason: string | null = null;
    for (const port of this.candidates(open, node)) {
      const verdict = this.checkOpen(open, node, port.key);
      if (!verdict.fits) reason ??= verdict.reason;
      else if (!verdict.replaces) return { kind: "fits", port, replaces: false };
      else taken ??= { kind: "fits", port, replaces: true };
    }
    return taken ?? { kind: "refused", reason: reason ?? "There is no such port" };
  }

  /** Ports that a wire might end at: those that bring or take a value first if the wire does. */
  private candidates(open: OpenEnd, node: string): readonly Port[] {
    const isSource = open.side === "source";
    const own = this.portsOf(open.node);
    const key = endAt(open.node, open.port).port ?? open.port;
    const begin = open.port.startsWith(INNER)
      ? (own?.inputs.get(key) ?? own?.outputs.get(key))
      : (isSource ? own?.outputs : own?.inputs)?.get(key);
    const ports = this.portsOf(node);
    const all = [...((isSource ? ports?.inputs : ports?.outputs)?.values() ?? [])];
    const data = all.filter((port) => port.kind === "data");
    const order = all.filter((port) => port.kind === "control");
    return begin?.kind === "data" ? [...data, ...order] : [...order, ...data];
  }

  /** Whether a step is the container that the end of a wire is inside of. */
  private isAround({ node, port }: OpenEnd, box: string): boolean {
    if (this.nodes.get(box)?.type !== CONTAINER_TYPE) return false;
    if (node === box) return port.startsWith(INNER);
    const seen = new Set<string>();
    for (let at = this.parentOf(node); at !== null && !seen.has(at); at = this.parentOf(at)) {
      if (at === box) return true;
      seen.add(at);
    }
    return false;
  }

  /** The first input that an output fits, data ports before the trigger: where a step that is added by key is wired. */
  firstFit(source: EdgeEnd, target: string): EdgeEnd | null {
    const inputs = [...(this.portsOf(target)?.inputs.values() ?? [])];
    const ordered = [
      ...inputs.filter((port) => port.kind === "data"),
      ...inputs.filter((port) => port.kind !== "data"),
    ];
    for (const port of ordered) {
      const end = { node: target, ...(port.key === "trigger" ? {} : { port: port.key }) };
      const verdict = this.check(source, end);
      if (verdict.fits && !verdict.replaces) return end;
    }
    return null;
  }

  private parentOf(id: string): string | null {
    return this.nodes.get(id)?.parent ?? null;
  }

  private isReachable(from: string, to: string): boolean {
    const known = this.reached.get(from);
    if (known !== undefined) return known.has(to);
    const seen = new Set([from]);
    for (const id of seen) for (const next of this.successors.get(id) ?? []) seen.add(next);
    this.reached.set(from, seen);
    return seen.has(to);
  }
}
