/**
 * Models of the session protocol (version 2) and of the HTTP worker contract: typed JSON objects.
 *
 * Written by `make wire` from `schemas/`; do not edit. A frame is `JSON.stringify` of a model, and
 * `JSON.parse` of a frame is one. `frame.type` tells which of `Frame` it is.
 */

/** One attempt of one task. */
export interface AttemptRef {
  task_id: string;
  attempt: number;
}

/** Answers ack.request (`for`), acknowledges a window (`recv_window` is there), or both. */
export interface ControlAck {
  /** The id of the frame that asked. */
  for?: string | null;
  /** The highest seq up to which all is committed; null before the first. */
  ack_seq?: number | null;
  ack_bitmap?: string;
  recv_window?: number | null;
  /** Attempts that a heartbeat named and that are no longer leased: kill at once. */
  stop?: AttemptRef[];
}

/** Scheduler to worker: take nothing new, finish what runs. */
export interface ControlDrain {
  reason?: string;
  deadline_ms?: number | null;
}

/** Who sent the frame. */
export interface EnvelopeSender {
  role: string;
  /** Of a worker: its instance id. */
  id: string;
}

/** `request` asks for control.ack; the rest is a window ack that rides along, there if `window` is. */
export interface EnvelopeAck {
  request?: boolean;
  seq?: number | null;
  bitmap?: string;
  window?: number | null;
}

/** What every frame of a session has in common. No other key is allowed here; in payloads unknown keys are ignored. */
export interface AnyFrame {
  /** Unique for all time: a ULID or a UUID. A frame that is sent again keeps it. */
  id: string;
  /** RFC 3339 with zone, from 1970-01-01 to 9999-12-30 UTC. For people and logs; no rule depends on it. */
  ts: string;
  tenant: string;
  /** Who sent the frame. */
  sender: EnvelopeSender;
  /** What the frame is about: the task id, for everything about a task. */
  corr?: string | null;
  /** On every sequenced frame (biz.*, ext.*, control.drain) and on no other. */
  seq?: number | null;
  ack?: EnvelopeAck | null;
  /** Reserved. */
  flags?: string[];
}

/** Both directions: a frame could not be used. Unsequenced, never answered. */
export interface ControlError {
  for: string;
  code: string;
  message?: string;
  /** A JSON pointer to what is wrong. */
  pointer?: string | null;
}

export interface ControlHandshakeAuth {
  /** token or mtls. */
  mode: string;
  token?: string | null;
  /** Must equal the certificate's; proves nothing by itself. */
  fingerprint?: string | null;
}

export interface ControlHandshakeWorker {
  /** Kept in the worker's data folder, the same after every boot. */
  worker_instance_id: string;
  /** Counts boots. */
  incarnation: number;
  /** For display. */
  worker_name: string;
  version: string;
  hostname: string;
}

/** Worker to scheduler: opens a new session; in a live one it presents a new bearer token. */
export interface ControlHandshake {
  /** 2 is spoken; another number is answered with those that are. */
  protocol: number;
  auth: ControlHandshakeAuth;
  worker: ControlHandshakeWorker;
  /** The lane of the tenant that the session is for; 0 if it is left out. */
  lane?: number;
}

export interface ControlHeartbeatMetricsResource {
  disk_bytes_in_use?: number;
  mem_bytes_in_use?: number;
  sessions_active?: number;
  eviction_candidates?: number;
  last_gc_seconds?: number;
}

export interface ControlHeartbeatMetrics {
  cpu_pct?: number;
  mem_pct?: number;
  disk_pct?: number;
  inflight?: number;
  latency_ms?: number;
  resource?: ControlHeartbeatMetricsResource;
}

export interface ControlHeartbeatPackages {
  digest?: string;
}

/** Worker to scheduler: alive; renews the lease of every attempt it names. */
export interface ControlHeartbeat {
  healthy?: boolean;
  draining?: boolean;
  /** Every attempt taken and not yet under ack_seq. */
  attempts?: AttemptRef[];
  metrics?: ControlHeartbeatMetrics;
  packages?: ControlHeartbeatPackages;
}

/** Scheduler to worker: how much waits for a slot in this lane. The newest one counts. */
export interface ControlHunger {
  /** Tasks that wait for a slot. */
  tasks?: number;
  /** The runs that they are of. */
  runs?: number;
}

export interface ControlLanesLanesItem {
  lane: number;
  /** Where to connect for it; null: where this session is. */
  location?: string | null;
}

/** Scheduler to worker: all lanes of the tenant beside lane 0. A worker keeps a session with each. */
export interface ControlLanes {
  lanes?: ControlLanesLanesItem[];
}

export interface ControlRegisterCapabilitiesConcurrency {
  max_parallel: number;
  per_node_limits?: Record<string, number>;
}

export interface ControlRegisterCapabilitiesResources {
  cpu?: number;
  memory_bytes?: number;
  gpu?: number;
}

export interface ControlRegisterCapabilities {
  concurrency: ControlRegisterCapabilitiesConcurrency;
  runtimes?: string[];
  features?: string[];
  /** What the machine has for nodes that ask for a part of it. */
  resources?: ControlRegisterCapabilitiesResources | null;
}

export interface ControlRegisterPackagesItem {
  name: string;
  version: string;
  status: string;
  manifest_sha256?: string | null;
}

/** Worker to scheduler: what it can do and what it holds. Only the first of a session reconciles. */
export interface ControlRegister {
  capabilities: ControlRegisterCapabilities;
  payload_types?: string[];
  packages?: ControlRegisterPackagesItem[];
  labels?: Record<string, string>;
  /** Attempts that run or are queued. */
  inflight?: AttemptRef[];
  /** Attempts that ended and are not acknowledged. */
  held_results?: AttemptRef[];
  /** Of max_parallel, the slots that are for this lane; all of them if it is left out. */
  slots?: number | null;
}

/** Scheduler to worker: the session, or the attempt to open one, is over. */
export interface ControlReset {
  code: string;
  reason?: string;
  retry_after_ms?: number | null;
  /** Where to connect instead. */
  location?: string | null;
}

/** Worker to scheduler: go on with a session over a new connection. */
export interface ControlResume {
  session_id: string;
  session_token: string;
  /** The sender's ack_seq: committed, and nothing else. */
  last_seen_seq?: number | null;
  /** As in the handshake of the session; 0 if it is left out. */
  lane?: number;
}

export interface ControlSessionAcceptLimits {
  /** Heartbeats may come at most this close on average. */
  heartbeat_gap_ms: number;
  /** So many refused frames within refusals_ms end the session. */
  refusals: number;
  refusals_ms: number;
  /** Of one instance id, by connections while another is open. */
  takeovers_per_minute: number;
  /** Of a result, and of one inline artifact. */
  inline_bytes: number;
  /** Attempts in a register or a heartbeat. */
  inventory: number;
  packages: number;
  labels: number;
  /** Of one result. */
  artifacts: number;
  /** Of one feedback. */
  chunks: number;
}

/** Scheduler to worker: the session is open, resumed, or has a new token. */
export interface ControlSessionAccept {
  session_id: string;
  session_token: string;
  expires_at: string;
  resumed: boolean;
  worker_instance_id: string;
  window: number;
  max_frame_bytes: number;
  heartbeat_interval_ms: number;
  lease_ttl_ms: number;
  /** The sender's ack_seq. */
  last_seen_seq?: number | null;
  /** What a worker must keep to. */
  limits?: ControlSessionAcceptLimits | null;
  /** Of the features that the register named, those of this session. */
  features?: string[];
}

/** Worker to scheduler: so many of its slots are for this lane from now on. The answer says that the scheduler counts so. */
export interface ControlSlots {
  slots: number;
}

/** Scheduler to worker: stop this attempt. */
export interface BizExecCancel {
  run_id: string;
  task_id: string;
  attempt: number;
  reason?: string;
  grace_ms?: number;
}

export interface BizExecDispatchPackage {
  name: string;
  version: string;
}

/** The right to run this attempt. */
export interface BizExecDispatchLease {
  ttl_ms: number;
  /** The id of the newest heartbeat or register that had been received. */
  since: string;
}

export interface BizExecDispatchConstraintsResources {
  cpu?: number;
  memory_bytes?: number;
  gpu?: number;
}

export interface BizExecDispatchConstraints {
  timeout_ms?: number | null;
  /** What the node asks for of the machine. */
  resources?: BizExecDispatchConstraintsResources | null;
}

export interface BizExecDispatchResourceRefsItem {
  resource_id: string;
  worker_id: string;
  type: string;
  scope?: string | null;
  expires_at?: string | null;
  /** About the resource. */
  metadata?: unknown;
}

export interface BizExecDispatchAffinity {
  key: string;
  mode?: "sticky" | "preferred";
  expires_at?: string | null;
}

export interface BizExecDispatchHostPackage {
  name: string;
  version: string;
}

export interface BizExecDispatchHost {
  node_type: string;
  package: BizExecDispatchHostPackage;
  /** What the host would be given now; null if it cannot be known, or is large. */
  parameters?: unknown;
  /** The SHA-256 of the type, the package and the input of the host. */
  input_sha256?: string | null;
}

/** Scheduler to worker: run this attempt. */
export interface BizExecDispatch {
  run_id: string;
  task_id: string;
  attempt: number;
  /** How often the task has failed: the retry budget's number. */
  failures: number;
  node_id: string;
  node_type: string;
  package: BizExecDispatchPackage;
  /** The node's parameters, bound. */
  parameters: unknown;
  /** The right to run this attempt. */
  lease: BizExecDispatchLease;
  constraints?: BizExecDispatchConstraints;
  concurrency_key?: string | null;
  resource_refs?: BizExecDispatchResourceRefsItem[];
  affinity?: BizExecDispatchAffinity | null;
  host_node_id?: string | null;
  middleware_chain?: string[];
  chain_index?: number | null;
  traceparent?: string | null;
  secrets?: Record<string, string> | null;
  /** For a middleware: the node that its chain ends in. */
  host?: BizExecDispatchHost | null;
}

/** Worker to scheduler: the dispatch was refused, nothing started. */
export interface BizExecError {
  run_id: string;
  task_id: string;
  attempt: number;
  code: string;
  message?: string;
  /** Anything that helps to understand it. */
  context?: unknown;
}

export interface BizExecFeedbackChunksItem {
  channel: string;
  index: number;
  text?: string | null;
  data_base64?: string | null;
  mime_type?: string | null;
  /** About the chunk. */
  metadata?: unknown;
}

/** Worker to scheduler: what a running attempt says. Shed first under load. */
export interface BizExecFeedback {
  run_id: string;
  task_id: string;
  attempt: number;
  stage?: string | null;
  progress?: number | null;
  message?: string | null;
  chunks?: BizExecFeedbackChunksItem[];
  metrics?: Record<string, number>;
  /** Chunks that were shed before this one. */
  dropped?: number;
}

/** Worker to scheduler: a middleware calls the rest of its chain. */
export interface BizExecNextRequest {
  run_id: string;
  task_id: string;
  attempt: number;
  request_id: string;
  chain_index: number;
  /** What the rest of the chain is given. */
  payload?: unknown;
  timeout_ms?: number | null;
}

/** Why an attempt failed. The category decides whether it is tried again. */
export interface AttemptError {
  code: string;
  category: "USER_CODE" | "DATA_QUALITY" | "INFRASTRUCTURE" | "CONFIGURATION" | "TIMEOUT" | "CANCELLED";
  message?: string;
  /** Overrides what the category says. */
  retryable?: boolean | null;
  stack?: string | null;
  /** Anything that helps to understand it. */
  context?: unknown;
}

/** Scheduler to worker: what the rest of the chain returned. */
export interface BizExecNextResponse {
  run_id: string;
  task_id: string;
  attempt: number;
  request_id: string;
  /** What it returned. */
  result?: unknown;
  /** There if and only if the call failed. */
  error?: AttemptError | null;
}

export interface BizExecResultArtifactsItem {
  resource_id: string;
  worker_id: string;
  type: string;
  size_bytes?: number | null;
  expires_at?: string | null;
  inline?: boolean;
  /** mime, sha256 and what else is known. */
  metadata?: unknown;
}

/** Worker to scheduler: the outcome of an attempt. */
export interface BizExecResult {
  run_id: string;
  task_id: string;
  attempt: number;
  status: "SUCCEEDED" | "FAILED" | "SKIPPED" | "CANCELLED";
  /** What the node returns. */
  result?: unknown;
  artifacts?: BizExecResultArtifactsItem[];
  duration_ms?: number;
  metrics?: Record<string, number>;
  error?: AttemptError | null;
}

/** Worker to scheduler: one manifest that the scheduler lacks. */
export interface BizPkgCatalog {
  name: string;
  version: string;
  manifest_sha256: string;
  /** The manifest, verbatim. */
  manifest: unknown;
}

/** Worker to scheduler: how far a package operation is. */
export interface BizPkgEvent {
  name: string;
  version: string;
  status: "downloading" | "installing" | "installed" | "failed" | "removed";
  progress?: number | null;
  /** What there is to say. */
  details?: unknown;
}

/** Scheduler to worker: install a package. */
export interface BizPkgInstall {
  name: string;
  version: string;
  url: string;
  sha256: string;
  signature?: string | null;
}

/** Scheduler to worker: remove a package. */
export interface BizPkgUninstall {
  name: string;
  version: string;
}

/** Scheduler to worker: let go of a scope or of one resource. */
export interface BizResourceCleanup {
  scope?: string | null;
  resource_id?: string | null;
  reason?: string;
}

/** Whose host holds it in memory. */
export interface Package {
  name: string;
  version: string;
}

/** Worker to scheduler: what became of a resource. */
export interface BizResourceEvent {
  resource_id: string;
  state: "ready" | "touched" | "evicting" | "evicted" | "released";
  size_bytes?: number | null;
  expires_at?: string | null;
  type?: string | null;
  scope?: string | null;
  run_id?: string | null;
  node_id?: string | null;
  package?: Package | null;
  created_at?: string | null;
  /** What the author says of it. */
  metadata?: unknown;
  error?: string | null;
}

/** Scheduler to worker: put the bytes on the data plane, never on this wire. */
export interface BizResourceExport {
  resource_id: string;
  upload_url: string;
}

/** Scheduler to worker: let a resource live until then. */
export interface BizResourceTouch {
  resource_id: string;
  expires_at: string;
}

/** Scheduler to worker, 200: `started` is stored. */
export interface HttpAccepted {
  /** Always true. */
  acknowledged: boolean;
  /** The clock of the scheduler. */
  serverTime: string;
}

/** Scheduler to worker, 200: the outcome is stored. */
export interface HttpCompletedAccepted {
  /** Always true. */
  acknowledged: boolean;
  /** The clock of the scheduler. */
  serverTime: string;
  /** The state of the attempt. */
  finalState: string;
}

/** Why it failed. */
export interface HttpCompletedError {
  category: "USER_CODE" | "DATA_QUALITY" | "INFRASTRUCTURE" | "CONFIGURATION" | "TIMEOUT" | "CANCELLED";
  /** At most 4 KiB of UTF-8. */
  message?: string;
  /** A code of the worker's own. */
  code?: string | null;
  /** Cut at 64 KiB. */
  stackTrace?: string | null;
  /** Overrides what the category says. */
  retryable?: boolean | null;
}

/** Worker to scheduler: the attempt has ended. `POST …/tasks/{taskId}/completed`. */
export interface HttpCompleted {
  attempt: number;
  /** Who runs the attempt, unique for this invocation. */
  workerId: string;
  /** `attemptId` of the envelope; checked when sent. */
  attemptId?: string | null;
  /** How it ended. */
  outcome: "SUCCEEDED" | "FAILED" | "CANCELLED" | "SKIPPED";
  /** By the clock of the worker. */
  completedAt?: string | null;
  /** The result, at most 256 KiB. */
  output?: Record<string, unknown> | null;
  /** Read as `output` when that is absent. */
  result?: Record<string, unknown> | null;
  /** Of a FAILED attempt, and only of one. */
  error?: HttpCompletedError | null;
  /** Numbers about the attempt. */
  metrics?: Record<string, number> | null;
  /** Where it was when it stopped. */
  cancelledDuringPhase?: string | null;
  /** How far it had come, at most 256 KiB. */
  partialProgress?: Record<string, unknown> | null;
}

/** Where the handler comes from. */
export interface HttpEnvelopePackage {
  name: string;
  version: string;
}

/** Scheduler to a worker pool: one attempt of a task. The body of the push. */
export interface HttpEnvelope {
  /** The task; the callbacks name it in their path. */
  taskId: string;
  /** The run. */
  runId: string;
  /** The id of the node. */
  assetId: string;
  /** `workflowId/nodeId`. */
  taskKey: string;
  /** The tenant. */
  tenantId: string;
  /** The workspace of the pool, `default` unless set. */
  workspaceId: string;
  /** The number of the attempt, which every callback carries. */
  attempt: number;
  /** The attempt in one word. */
  attemptId: string;
  /** The same for every delivery of this attempt: a second one must not run. */
  dispatchId: string;
  /** How often the task has failed before. */
  failures: number;
  /** Which handler runs it. */
  nodeType: string;
  /** Where the handler comes from. */
  package: HttpEnvelopePackage;
  /** The input of the handler. */
  parameters: Record<string, unknown>;
  /** What the node asks for of a machine: `cpu`, `memoryBytes` and `gpu`, those that it asks for. */
  resources: Record<string, unknown>;
  /** When the attempt was issued. */
  enqueuedAt: string;
  /** When it must have ended, if its node has a timeout. */
  deadline: string | null;
  /** The timeout of the node, from the start. */
  timeoutMs?: number | null;
  /** What `/v1/tasks/…` is appended to. */
  callbackBaseUrl: string;
  /** The bearer token of the callbacks. Never logged. */
  taskToken: string;
  /** Heartbeats renew it before. */
  tokenExpiresAt: string;
  /** How often to send a heartbeat. */
  heartbeatIntervalMs: number;
  /** After so long without one the attempt has failed. */
  heartbeatTimeoutMs: number;
  /** How long a cancelled attempt may take to stop. */
  cancelGracePeriodMs: number;
  /** The trace that it belongs to (W3C). */
  traceparent?: string | null;
  /** The secrets that the node declares, by name. Never logged. */
  secrets?: Record<string, string> | null;
}

/** Scheduler to worker, 200: the heartbeat counts. */
export interface HttpHeartbeatAccepted {
  /** Always true. */
  acknowledged: boolean;
  /** The clock of the scheduler. */
  serverTime: string;
  /** The worker is to stop and to report CANCELLED. */
  shouldCancel: boolean;
  /** Why. */
  cancelReason?: string | null;
  /** A token to use from now on. Never logged. */
  taskToken?: string | null;
  /** When that token expires. */
  tokenExpiresAt?: string | null;
}

/** Worker to scheduler: it is alive. `POST …/tasks/{taskId}/heartbeat`. */
export interface HttpHeartbeat {
  attempt: number;
  /** Who runs the attempt, unique for this invocation. */
  workerId: string;
  /** `attemptId` of the envelope; checked when sent. */
  attemptId?: string | null;
  /** For people: liveness is when it was received. */
  heartbeatAt?: string | null;
  /** How far it is, in percent. */
  progressPct?: number | null;
  /** At most 4 KiB of UTF-8. */
  message?: string | null;
}

/** Scheduler to worker, 4xx and 5xx: why a callback was refused. */
export interface HttpRefused {
  /** The code. */
  error: string;
  /** What happened. */
  message: string;
  /** The member of the body that is wrong. */
  field?: string | null;
  /** The state of the attempt. */
  state?: string | null;
  /** The newest attempt. */
  expectedAttempt?: number | null;
  /** The attempt of the callback or of its token. */
  receivedAttempt?: number | null;
}

/** Worker to scheduler: it began. `POST …/tasks/{taskId}/started`. */
export interface HttpStarted {
  attempt: number;
  /** Who runs the attempt, unique for this invocation. */
  workerId: string;
  /** `attemptId` of the envelope; checked when sent. */
  attemptId?: string | null;
  /** By the clock of the worker. */
  startedAt?: string | null;
}

/** The payload of each frame type. */
export interface Payloads {
  "control.ack": ControlAck;
  "control.drain": ControlDrain;
  "control.error": ControlError;
  "control.handshake": ControlHandshake;
  "control.heartbeat": ControlHeartbeat;
  "control.hunger": ControlHunger;
  "control.lanes": ControlLanes;
  "control.register": ControlRegister;
  "control.reset": ControlReset;
  "control.resume": ControlResume;
  "control.session.accept": ControlSessionAccept;
  "control.slots": ControlSlots;
  "biz.exec.cancel": BizExecCancel;
  "biz.exec.dispatch": BizExecDispatch;
  "biz.exec.error": BizExecError;
  "biz.exec.feedback": BizExecFeedback;
  "biz.exec.next.request": BizExecNextRequest;
  "biz.exec.next.response": BizExecNextResponse;
  "biz.exec.result": BizExecResult;
  "biz.pkg.catalog": BizPkgCatalog;
  "biz.pkg.event": BizPkgEvent;
  "biz.pkg.install": BizPkgInstall;
  "biz.pkg.uninstall": BizPkgUninstall;
  "biz.resource.cleanup": BizResourceCleanup;
  "biz.resource.event": BizResourceEvent;
  "biz.resource.export": BizResourceExport;
  "biz.resource.touch": BizResourceTouch;
}

export type FrameType = keyof Payloads;

/** A frame of one type. */
export interface FrameOf<T extends FrameType> extends AnyFrame {
  type: T;
  payload: Payloads[T];
}

export type Frame = { [T in FrameType]: FrameOf<T> }[FrameType];
