/** The events of a run, as the stream of the API brings them. Fields that are not used here are left out. */

import type { Json } from "../json/tree";

export type RunStatus = "queued" | "running" | "succeeded" | "failed" | "cancelled";
export type NodeStatus =
  | "pending"
  | "ready"
  | "dispatched"
  | "running"
  | "retrying"
  | "waiting"
  | "succeeded"
  | "failed"
  | "skipped"
  | "cancelled";

export interface RunError {
  readonly code: string;
  readonly category?: string | null;
  readonly message?: string;
  readonly stack?: string | null;
}

export interface WaitingFor {
  readonly kind: string;
  readonly detail: string;
  readonly until?: string | null;
  readonly retryAt?: string | null;
}

export interface ItemCounts {
  readonly total: number;
  readonly pending: number;
  readonly running: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly skipped: number;
  readonly cancelled: number;
}

/** What an event is about: a node, or a call within the chain around one. */
export interface NodeBody {
  readonly nodeId: string;
  readonly hostNodeId?: string | null;
  readonly chainIndex?: number | null;
  readonly callId?: string | null;
  readonly scopePath?: string | null;
}

export interface NodeStateBody extends NodeBody {
  readonly status: NodeStatus;
  readonly attempt?: number | null;
  readonly workerId?: string | null;
  readonly waitingFor?: WaitingFor | null;
  readonly progress?: number | null;
  readonly stage?: string | null;
  readonly message?: string | null;
  readonly error?: RunError | null;
  readonly reusedFrom?: string | null;
  readonly pinned?: boolean | null;
  readonly items?: number | null;
  readonly dropped?: number;
}

export interface OutputBody extends NodeBody {
  readonly attempt: number;
  readonly channel: string;
  readonly index: number;
  readonly mimeType: string;
  readonly text?: string | null;
  readonly dataBase64?: string | null;
  readonly metadata?: Json;
  /** How many pieces are joined in this one. */
  readonly pieces?: number;
}

/** A node in the snapshot of a run. */
export interface SnapshotNode extends NodeBody {
  /** The container that the node is inside of. */
  readonly parent?: string | null;
  readonly status: NodeStatus;
  readonly attempt: number;
  readonly failures?: number;
  readonly workerId?: string | null;
  readonly waitingFor?: WaitingFor | null;
  readonly error?: RunError | null;
  readonly progress?: number | null;
  readonly message?: string | null;
  readonly startedAt?: string | null;
  readonly finishedAt?: string | null;
  readonly maxAttempts?: number;
  readonly items?: ItemCounts | null;
  readonly pinned?: boolean;
  readonly metrics?: Readonly<Record<string, number>> | null;
}

export interface SnapshotBody {
  readonly runId: string;
  readonly status: RunStatus;
  readonly lastEvent: number;
  readonly cancelRequested?: boolean;
  readonly error?: RunError | null;
  readonly startedAt?: string | null;
  readonly finishedAt?: string | null;
  readonly nodes?: readonly SnapshotNode[];
  readonly output?: readonly OutputBody[];
}

export interface RunEvent {
  /** 0 for what has no number: it is about the connection. */
  readonly id?: number;
  readonly type: string;
  readonly occurredAt?: string;
  readonly data: unknown;
}
