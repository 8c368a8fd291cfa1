/**
 * From events to the state of a run. Pure: the same events give the same state, in whatever batches they come. An
 * event that was seen changes nothing, so that a stream may be resumed too early. A batch copies each map once, and
 * only nodes that changed are new objects: a view of one node is drawn again for that node's events alone.
 */

import type {
  NodeBody,
  NodeStateBody,
  OutputBody,
  RunError,
  RunEvent,
  RunStatus,
  SnapshotBody,
  SnapshotNode,
} from "./events";
import {
  edgeKey,
  isEnded,
  keyOf,
  MAX_METRICS,
  MAX_SCOPED_NODES,
  MAX_STREAM_CHARS,
  MAX_STREAMS,
  newNode,
  type OutputStream,
  type RunNode,
  type RunState,
  startRun,
} from "./state";

/** Apply a batch of events, in their order. Nothing new: the same state. */
export function reduceRun(state: RunState, events: readonly RunEvent[]): RunState {
  const batch = new Batch(state);
  for (const event of events) batch.apply(event);
  return batch.result();
}

type Head = Omit<RunState, "nodes" | "edges" | "scopedCount">;

class Batch {
  private head: Head;
  private nodes: Map<string, RunNode> | null = null;
  private edges: Map<string, boolean> | null = null;
  private scoped: number;
  /** The last event that was seen before. Within a batch numbers are not in order: outputs of several nodes are joined. */
  private seen: number;
  private readonly taken = new Set<number>();

  constructor(private readonly before: RunState) {
    this.head = before;
    this.seen = before.lastEvent;
    this.scoped = before.scopedCount;
  }

  result(): RunState {
    const { before, head, nodes, edges } = this;
    if (head === before && nodes === null && edges === null) return before;
    return { ...head, nodes: nodes ?? before.nodes, edges: edges ?? before.edges, scopedCount: this.scoped };
  }

  apply(event: RunEvent): void {
    const id = event.id ?? 0;
    // A snapshot has the number of the last event in it, which may have come alone before: to whoever has begun to
    // follow between the two, the snapshot says all the rest.
    const isSnapshot = event.type === "run.snapshot";
    if (!isSnapshot && id > 0 && (id <= this.seen || this.taken.has(id))) return;
    if (id > 0) this.taken.add(id);
    const at = event.occurredAt ?? null;
    switch (event.type) {
      case "run.snapshot":
        this.takeSnapshot(event.data as SnapshotBody);
        break;
      case "run.status":
        this.takeStatus(
          event.data as { status: RunStatus; cancelRequested?: boolean; error?: RunError | null },
          at,
        );
        break;
      case "node.state":
        this.takeState(event.data as NodeStateBody, at);
        break;
      case "node.error":
        this.change(event.data as NodeBody, (node) => ({
          ...node,
          failures: node.failures + 1,
          error: (event.data as { error: RunError }).error,
        }));
        break;
      case "node.result.delta":
        this.takeOutput(event.data as OutputBody);
        break;
      case "node.result.snapshot":
        this.change(event.data as NodeBody, (node) => ({ ...node, hasResult: true }));
        break;
      case "artifact.ready":
        this.change(event.data as NodeBody, (node) => ({ ...node, artifacts: node.artifacts + 1 }));
        break;
      case "run.metrics":
        this.takeMetrics(event.data as NodeBody & { metrics: Record<string, number> });
        break;
      case "edge.state": {
        const body = event.data as NodeBody & { sourceNodeId: string; taken: boolean };
        if (!body.scopePath) this.editEdges().set(edgeKey(body.sourceNodeId, body.nodeId), body.taken);
        break;
      }
      case "stream.reset":
        this.head = { ...this.head, needsSnapshot: true };
        break;
      default: // a type of a newer scheduler: its number counts
    }
    if (id > this.head.lastEvent) this.head = { ...this.head, lastEvent: id };
  }

  private takeSnapshot(run: SnapshotBody): void {
    if (run.lastEvent < this.head.lastEvent) return; // it is older than what is known
    this.head = {
      ...startRun(run.runId),
      status: run.status,
      isCancelRequested: run.cancelRequested ?? false,
      error: run.error ?? null,
      startedAt: run.startedAt ?? null,
      finishedAt: run.finishedAt ?? null,
      // Of a run that has ended the last event follows again, so that there is a number to reconnect with.
      lastEvent: run.finishedAt == null ? run.lastEvent : run.lastEvent - 1,
    };
    this.seen = this.head.lastEvent;
    this.edges = new Map(this.before.edges);
    this.nodes = new Map();
    this.scoped = 0;
    for (const node of run.nodes ?? [])
      this.put(keyOf(node), fromSnapshot(node, this.before.nodes.get(keyOf(node))));
    const output = run.output;
    if (output === undefined) return;
    for (const [key, node] of this.nodes)
      if (Object.keys(node.streams).length > 0) this.nodes.set(key, { ...node, streams: {} });
    for (const piece of output) this.takeOutput(piece);
  }

  private takeStatus(
    body: { status: RunStatus; cancelRequested?: boolean; error?: RunError | null },
    at: string | null,
  ): void {
    const hasEnded = body.status === "succeeded" || body.status === "failed" || body.status === "cancelled";
    this.head = {
      ...this.head,
      status: body.status,
      isCancelRequested: this.head.isCancelRequested || (body.cancelRequested ?? false),
      error: body.error ?? this.head.error,
      startedAt: this.head.startedAt ?? (body.status === "running" ? at : null),
      finishedAt: hasEnded ? (this.head.finishedAt ?? at) : null,
    };
  }

  private takeState(body: NodeStateBody, at: string | null): void {
    // A call within the chain around a node is not the node: its host says how that stands.
    if (body.callId != null) return;
    this.change(body, (node) => {
      const attempt = body.attempt ?? node.attempt;
      const isNew = attempt !== node.attempt;
      const isOver = isEnded(body.status);
      return {
        ...node,
        status: body.status,
        attempt,
        workerId: body.workerId ?? (isNew ? null : node.workerId),
        waitingFor: body.waitingFor ?? null,
        progress: body.progress ?? (isNew || isOver ? null : node.progress),
        message: body.message ?? (isNew ? null : node.message),
        error: body.error ?? (body.status === "succeeded" ? null : node.error),
        startedAt: node.startedAt ?? (body.status === "running" ? at : null),
        finishedAt: isOver ? at : null,
        isReused: node.isReused || body.reusedFrom != null || body.pinned === true,
        items: body.items ?? node.items,
        // What an earlier attempt wrote is not the output of this one.
        streams: isNew ? {} : node.streams,
      };
    });
  }

  private takeOutput(body: OutputBody): void {
    this.change(body, (node) => {
      const known = node.streams[body.channel];
      if (known !== undefined && body.attempt < known.attempt) return node;
      if (known === undefined && Object.keys(node.streams).length >= MAX_STREAMS) return node;
      const stream = extended(known?.attempt === body.attempt ? known : undefined, body);
      return stream === known ? node : { ...node, streams: { ...node.streams, [body.channel]: stream } };
    });
  }

  private takeMetrics(body: NodeBody & { metrics: Record<string, number> }): void {
    this.change(body, (node) => {
      const merged = Object.entries({ ...node.metrics, ...body.metrics }).slice(0, MAX_METRICS);
      return { ...node, metrics: Object.fromEntries(merged) };
    });
  }

  private change(body: NodeBody, edit: (node: RunNode) => RunNode): void {
    const key = keyOf(body);
    const known = (this.nodes ?? this.before.nodes).get(key);
    const node = known ?? newNode(body.nodeId, body.scopePath ?? null);
    const edited = edit(node);
    if (edited !== known) this.put(key, edited);
  }

  private put(key: string, node: RunNode): void {
    const nodes = this.editNodes();
    if (!nodes.has(key) && node.scopePath !== null) {
      this.scoped += 1;
      if (this.scoped > MAX_SCOPED_NODES) this.forgetOne(nodes);
    }
    nodes.set(key, node);
  }

  /** Make room: the oldest item that has ended, else the oldest. The API has them all. */
  private forgetOne(nodes: Map<string, RunNode>): void {
    let oldest: string | null = null;
    for (const [key, node] of nodes) {
      if (node.scopePath === null) continue;
      oldest ??= key;
      if (isEnded(node.status)) {
        oldest = key;
        break;
      }
    }
    if (oldest !== null && nodes.delete(oldest)) this.scoped -= 1;
  }

  private editNodes(): Map<string, RunNode> {
    this.nodes ??= new Map(this.before.nodes);
    return this.nodes;
  }

  private editEdges(): Map<string, boolean> {
    this.edges ??= new Map(this.before.edges);
    return this.edges;
  }
}

function extended(known: OutputStream | undefined, body: OutputBody): OutputStream {
  const next = body.index + (body.pieces ?? 1);
  if (known !== undefined && next <= known.next) return known;
  const text = (known?.text ?? "") + (body.text ?? "");
  const cut = Math.max(0, text.length - MAX_STREAM_CHARS);
  return {
    attempt: body.attempt,
    text: cut > 0 ? text.slice(cut) : text,
    next,
    forgotten: (known?.forgotten ?? 0) + cut,
    mimeType: body.mimeType,
  };
}

/** It has a result and never began: the result was taken over. A node inside of another stands for all of its items. */
const hasNotRun = (given: SnapshotNode): boolean =>
  given.status === "succeeded" &&
  given.attempt === 0 &&
  given.startedAt == null &&
  given.items == null &&
  given.parent == null;

function fromSnapshot(given: SnapshotNode, known: RunNode | undefined): RunNode {
  return {
    ...newNode(given.nodeId, given.scopePath ?? null),
    status: given.status,
    attempt: given.attempt,
    failures: given.failures ?? 0,
    maxAttempts: given.maxAttempts ?? null,
    workerId: given.workerId ?? null,
    waitingFor: given.waitingFor ?? null,
    progress: given.progress ?? null,
    message: given.message ?? null,
    error: given.error ?? null,
    startedAt: given.startedAt ?? null,
    finishedAt: given.finishedAt ?? null,
    isReused: given.pinned === true || (known?.isReused ?? false) || hasNotRun(given),
    items: given.items?.total ?? null,
    itemCounts: given.items ?? null,
    metrics: given.metrics ?? {},
    streams: known !== undefined && known.attempt === given.attempt ? known.streams : {},
    artifacts: known?.artifacts ?? 0,
    hasResult: given.status === "succeeded",
  };
}
