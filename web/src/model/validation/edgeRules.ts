/** What edges must keep: their ends are there, their ports fit, and they stay within their container. */

import type { EdgeDefinition, NodeDefinition } from "../definition";
import { DONE, type NodePorts, type Port, TRIGGER } from "../ports";
import { mayFit } from "../schemaTypes";
import type { Family } from "./familyRules";
import type { Resolved } from "./nodeRules";
import { MAX_EXPRESSION_CHARS, MAX_KEY_CHARS, type Problems } from "./problems";

/** A sound edge, between places of the list of nodes. */
export interface Link {
  readonly source: number;
  readonly target: number;
  /** It brings what was given to the container, and is no order. */
  readonly isOuter: boolean;
}

export class EdgeRules {
  readonly links: Link[] = [];
  private readonly taken = new Set<string>();
  private readonly outputs = new Set<string>();

  constructor(
    private readonly nodes: readonly NodeDefinition[],
    private readonly index: ReadonlyMap<string, number>,
    private readonly types: readonly Resolved[],
    private readonly ports: readonly NodePorts[],
    private readonly family: Family,
    private readonly problems: Problems,
  ) {}

  checkAll(edges: readonly EdgeDefinition[]): void {
    const seen = new Set<string>();
    edges.forEach((edge, place) => {
      if (edge.id != null) {
        this.problems.checkKey(`/edges/${place}/id`, edge.id, MAX_KEY_CHARS);
        if (seen.has(edge.id))
          this.problems.add(`/edges/${place}/id`, "DUPLICATE_ID", "two edges have the same id");
        seen.add(edge.id);
      }
      this.check(edge, place);
    });
  }

  private check(edge: EdgeDefinition, place: number): void {
    const source = this.index.get(edge.source.node);
    const target = this.index.get(edge.target.node);
    for (const [name, found] of [
      ["source", source],
      ["target", target],
    ] as const) {
      if (found === undefined) {
        this.problems.add(`/edges/${place}/${name}/node`, "UNKNOWN_NODE", "there is no node with this id");
      }
    }
    if (source === undefined || target === undefined) return;
    if (source === target) {
      this.problems.add(`/edges/${place}`, "SELF_EDGE", "the edge leads from a node to itself");
    } else if (this.isWithin(edge, source, target, place)) this.link(edge, source, target, place);
  }

  private isWithin(edge: EdgeDefinition, source: number, target: number, place: number): boolean {
    for (const [name, end] of [
      ["source", source],
      ["target", target],
    ] as const) {
      if (this.family.hosts.has(end)) {
        const message = "a middleware runs when its host does and has no edges";
        this.problems.add(`/edges/${place}/${name}/node`, "INVALID", message);
      }
    }
    const { parents } = this.family;
    if (parents.get(source) === parents.get(target)) return true;
    if (parents.get(target) === source || parents.get(source) === target)
      this.border(edge, source, target, place);
    else this.problems.add(`/edges/${place}`, "INVALID", "the edge crosses the border of a container");
    return false;
  }

  private border(edge: EdgeDefinition, source: number, target: number, place: number): void {
    if (edge.when != null) {
      this.problems.add(
        `/edges/${place}/when`,
        "INVALID",
        "an edge at the border of its container has no condition",
      );
      return;
    }
    const out = edge.source.port ?? null;
    const into = edge.target.port ?? null;
    const [from, to] = [`/edges/${place}/source/port`, `/edges/${place}/target/port`];
    if (this.family.parents.get(target) === source) {
      if (out === null || out === "trigger" || into === null || into === "trigger") return;
      const read = this.declared("inputs", source, out, from);
      const write = this.input(target, into, to);
      if (read !== null && write?.kind === "data") this.links.push({ source, target, isOuter: true });
      return;
    }
    if (into === null || into === "done") return;
    const found = this.output(source, out, from);
    const port = this.declared("outputs", target, into, to);
    if (found === null || port === null) return;
    const key = `${target} ${port.key}`;
    if (found.kind === "error" || found.isCase || port.kind !== "data") {
      this.problems.add(`/edges/${place}`, "INVALID", "only a value can be an output of the container");
    } else if (this.outputs.has(key)) {
      this.problems.add(to, "DOUBLE_INPUT", `two edges lead to one output of the container: ${port.key}`);
    } else this.outputs.add(key);
  }

  private link(edge: EdgeDefinition, source: number, target: number, place: number): void {
    if (edge.when != null) this.problems.checkKey(`/edges/${place}/when`, edge.when, MAX_EXPRESSION_CHARS);
    const read = this.output(source, edge.source.port ?? null, `/edges/${place}/source/port`);
    const into = edge.target.port ?? null;
    const write =
      into === null || into === "trigger" ? TRIGGER : this.input(target, into, `/edges/${place}/target/port`);
    if (read === null || write === null) return;
    const isMapped = this.nodes[source]?.map != null || this.nodes[target]?.map != null;
    const carries = write.kind !== "control" && read.kind !== "error";
    if (carries && !isMapped && !mayFit(read.types, write.types)) {
      const named = (port: Port): string => [...(port.types ?? [])].sort().join(" or ");
      const message = `the edge brings ${named(read)}, and its target takes ${named(write)}`;
      this.problems.add(`/edges/${place}`, "EDGE_TYPE", message);
    }
    this.links.push({ source, target, isOuter: false });
  }

  /** The output port of a node; an unknown one is reported, unless the node itself was. */
  output(node: number, port: string | null, pointer: string): Port | null {
    if (port === null || port === "done") return DONE;
    const found = this.ports[node]?.outputs.get(port);
    if (found?.isCase && this.nodes[node]?.map != null) {
      this.problems.add(pointer, "INVALID", "a map chooses for each item: map a container with this node");
    }
    return found ?? this.declared("outputs", node, port, pointer);
  }

  private input(node: number, port: string, pointer: string): Port | null {
    const found = this.declared("inputs", node, port, pointer);
    if (found === null || found.kind !== "data" || found.isMultiple) return found;
    const key = `${node} ${port}`;
    if (this.taken.has(key)) {
      this.problems.add(pointer, "DOUBLE_INPUT", `two edges lead into a port that takes one: ${port}`);
      return null;
    }
    this.taken.add(key);
    return found;
  }

  private declared(side: "inputs" | "outputs", node: number, port: string, pointer: string): Port | null {
    const ports = this.ports[node];
    const found = ports?.[side].get(port);
    const isKnown = side === "inputs" ? ports?.knowsInputs : ports?.knowsOutputs;
    if (found !== undefined && (isKnown || !found.isImplied || side === "outputs")) return found;
    if (this.types[node] != null || isKnown) {
      this.problems.add(pointer, "UNKNOWN_PORT", `the node has no such port: ${port}`);
    }
    return null;
  }
}
