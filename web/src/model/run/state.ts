/** What a browser knows of a run: made from its events alone, and bounded whatever the run does. */

import type { ItemCounts, NodeBody, NodeStatus, RunError, RunStatus, WaitingFor } from "./events";

/** Text that a node writes. Only its end is kept: the logs have the rest. */
export interface OutputStream {
  readonly attempt: number;
  readonly text: string;
  /** The index of the piece that comes next. */
  readonly next: number;
  /** Characters that were written before `text` and are not kept. */
  readonly forgotten: number;
  readonly mimeType: string;
}

export interface RunNode {
  readonly nodeId: string;
  readonly scopePath: string | null;
  readonly status: NodeStatus;
  readonly attempt: number;
  readonly failures: number;
  readonly maxAttempts: number | null;
  readonly workerId: string | null;
  readonly waitingFor: WaitingFor | null;
  readonly progress: number | null;
  readonly message: string | null;
  readonly error: RunError | null;
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
  /** Its result is that of another run, or a pinned one. */
  readonly isReused: boolean;
  /** How many items a map has. */
  readonly items: number | null;
  readonly itemCounts: ItemCounts | null;
  readonly streams: Readonly<Record<string, OutputStream>>;
  readonly metrics: Readonly<Record<string, number>>;
  readonly artifacts: number;
  readonly hasResult: boolean;
}

export interface RunState {
  readonly runId: string;
  readonly status: RunStatus;
  readonly isCancelRequested: boolean;
  readonly error: RunError | null;
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
  /** The last event that is in this state: what is not after it changes nothing. */
  readonly lastEvent: number;
  /** By `keyOf`. Items of maps are among them, up to `MAX_SCOPED_NODES`. */
  readonly nodes: ReadonlyMap<string, RunNode>;
  readonly scopedCount: number;
  /** Whether the condition of the edges between two nodes holds, by `edgeKey`. */
  readonly edges: ReadonlyMap<string, boolean>;
  /** Events are missing for good: a snapshot is needed. */
  readonly needsSnapshot: boolean;
}

export const MAX_STREAM_CHARS = 256 * 1024;
export const MAX_STREAMS = 16;
export const MAX_SCOPED_NODES = 2_000;
export const MAX_METRICS = 64;

export const keyOf = (body: Pick<NodeBody, "nodeId" | "scopePath">): string =>
  body.scopePath ? `${body.scopePath}/${body.nodeId}` : body.nodeId;

export const edgeKey = (source: string, target: string): string => `${source}>${target}`;

export function startRun(runId: string): RunState {
  return {
    runId,
    status: "queued",
    isCancelRequested: false,
    error: null,
    startedAt: null,
    finishedAt: null,
    lastEvent: 0,
    nodes: new Map(),
    scopedCount: 0,
    edges: new Map(),
    needsSnapshot: false,
  };
}

export function newNode(nodeId: string, scopePath: string | null): RunNode {
  return {
    nodeId,
    scopePath,
    status: "pending",
    attempt: 0,
    failures: 0,
    maxAttempts: null,
    workerId: null,
    waitingFor: null,
    progress: null,
    message: null,
    error: null,
    startedAt: null,
    finishedAt: null,
    isReused: false,
    items: null,
    itemCounts: null,
    streams: {},
    metrics: {},
    artifacts: 0,
    hasResult: false,
  };
}

const ENDED: ReadonlySet<NodeStatus> = new Set(["succeeded", "failed", "skipped", "cancelled"]);
export const isEnded = (status: NodeStatus): boolean => ENDED.has(status);

/** How a step is shown: the states of the guide for colours, icons and words. */
export type StepState =
  | "notRun"
  | "queued"
  | "running"
  | "waiting"
  | "retrying"
  | "succeeded"
  | "cached"
  | "failed"
  | "cancelled"
  | "skipped";

/** What a ready node waits for by itself, rather than for a worker. */
const WAITS = new Set(["time", "approval", "signal", "key", "tenant"]);

export function stepState(node: RunNode | undefined): StepState {
  if (node === undefined) return "notRun";
  switch (node.status) {
    case "pending":
      return "notRun";
    case "ready":
    case "dispatched":
      return WAITS.has(node.waitingFor?.kind ?? "") ? "waiting" : "queued";
    case "succeeded":
      return node.isReused ? "cached" : "succeeded";
    default:
      return node.status;
  }
}
