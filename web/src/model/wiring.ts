/** Whether an edge may be drawn, and if not, why: asked for every port while somebody drags a wire. */

import type { NodeCatalog } from "./catalog";
import type { EdgeEnd, NodeDefinition } from "./definition";
import { edgesOf, nodesOf, type WorkflowDocument } from "./document";
import { type NodePorts, type Port, portsOf } from "./ports";
import { mayFit } from "./schemaTypes";

export type WireVerdict =
  | { readonly fits: true; readonly replaces: boolean }
  | { readonly fits: false; readonly reason: string };

const refused = (reason: string): WireVerdict => ({ fits: false, reason });
const named = (port: Port): string => [...(port.types ?? [])].sort().join(" or ");

/** What is known of a document when a wire is begun: made once, then asked for each port. */
export class Wiring {
  private readonly nodes: ReadonlyMap<string, NodeDefinition>;
  private readonly ports = new Map<string, NodePorts>();
  private readonly successors = new Map<string, string[]>();
  private readonly taken = new Set<string>();
  private readonly hosts = new Map<string, string>();

  constructor(
    document: WorkflowDocument,
    private readonly catalog: NodeCatalog,
  ) {
    this.nodes = new Map(nodesOf(document).map((node) => [node.id, node]));
    for (const node of this.nodes.values())
      for (const one of node.middlewares ?? []) this.hosts.set(one, node.id);
    for (const edge of edgesOf(document)) {
      const known = this.successors.get(edge.source.node);
      if (known === undefined) this.successors.set(edge.source.node, [edge.target.node]);
      else known.push(edge.target.node);
      if (edge.target.port) this.taken.add(`${edge.target.node} ${edge.target.port}`);
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
    const read = this.portsOf(source.node)?.outputs.get(source.port ?? "done");
    const write = this.portsOf(target.node)?.inputs.get(target.port ?? "trigger");
    if (read === undefined || write === undefined) return refused("There is no such port");
    if (this.hosts.has(source.node) || this.hosts.has(target.node)) {
      return refused("A middleware runs with the step that it wraps and has no edges");
    }
    const [from, to] = [this.parentOf(source.node), this.parentOf(target.node)];
    if (from !== to) return refused("The edge would cross the border of a container");
    if (this.isReachable(target.node, source.node)) return refused("The edge would close a circle");
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
    const seen = new Set([from]);
    for (const id of seen) {
      if (id === to) return true;
      for (const next of this.successors.get(id) ?? []) seen.add(next);
    }
    return false;
  }
}
