/**
 * The one event stream of a browser. It carries the tenant and all runs that some tab shows. Another set of runs is
 * another request, which goes on from the position of the last one (ADR 35): nothing is missed and nothing is lost.
 */

import type { RunEvent } from "../model/run/events";
import type { LiveState, TenantEvent } from "./messages";
import { positionFor, readPosition, type StreamPosition } from "./position";

const RETRY_S = [1, 2, 5, 10, 30] as const;
const OFFLINE_AFTER = 3;
/** `EventSource.CLOSED`: the server has answered, and refused. Without an answer it would be connecting. */
const REFUSED = 2;
/** A page that opens follows several runs one after the other: they are asked for together. */
const SETTLE_MS = 30;
const COALESCE_MS = 100;
/** A stream with more is refused, for all tabs. Those that were opened last are followed. */
const MAX_RUNS = 100;
/** The server pings every 15 seconds. A stream that is silent for longer has lost its peer without a word. */
const SILENT_MS = 40_000;

interface StreamItem extends RunEvent {
  readonly runId?: string;
}

export interface Source {
  readonly readyState: number;
  onopen: (() => void) | null;
  onerror: (() => void) | null;
  addEventListener(type: string, listener: (event: { data: string; lastEventId: string }) => void): void;
  close(): void;
}

export interface ConnectionOptions {
  readonly open: (url: string) => Source;
  readonly onState: (state: LiveState) => void;
  readonly onTenant: (events: readonly TenantEvent[]) => void;
  readonly onRun: (runId: string, events: readonly RunEvent[]) => void;
}

export class Connection {
  private readonly runs = new Map<string, number>();
  /** Runs that are to begin with a snapshot, until a stream that was asked for it has spoken. */
  private readonly renewed = new Set<string>();
  private position: StreamPosition | null = null;
  private source: Source | null = null;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private silence: ReturnType<typeof setTimeout> | null = null;
  private failures = 0;
  private since = 0;
  private wantsLoads = false;
  private isOn = false;
  state: LiveState = { kind: "connecting" };

  constructor(private readonly options: ConnectionOptions) {}

  start(): void {
    if (this.isOn) return;
    this.isOn = true;
    this.connect();
  }

  stop(): void {
    this.isOn = false;
    this.plan(null, 0);
    this.close();
  }

  /** The browser says that the network is gone: the stream may not notice for minutes. */
  lose(): void {
    if (this.source === null) return;
    this.close();
    this.retry();
  }

  /** Follow a run for one more tab. It begins with a snapshot, also for those that follow it already. */
  follow(runId: string): void {
    this.runs.set(runId, (this.runs.get(runId) ?? 0) + 1);
    this.refresh(runId);
  }

  unfollow(runId: string): void {
    const left = (this.runs.get(runId) ?? 0) - 1;
    if (left > 0) this.runs.set(runId, left);
    else this.runs.delete(runId);
    // The stream may carry it on until the next change: whoever gets it does not ask for it.
  }

  refresh(runId: string): void {
    this.renewed.add(runId);
    if (this.source !== null) this.plan(() => this.connect(), SETTLE_MS);
  }

  wantLoads(isWanted: boolean): void {
    if (isWanted === this.wantsLoads) return;
    this.wantsLoads = isWanted;
    if (this.source !== null) this.plan(() => this.connect(), SETTLE_MS);
  }

  /** Something says that the way is open again: do not wait for the next try. */
  wake(): void {
    if (this.isOn && this.source === null) this.connect();
  }

  private plan(act: (() => void) | null, delay: number): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = act === null ? null : setTimeout(act, delay);
  }

  private connect(): void {
    this.plan(null, 0);
    if (!this.isOn) return;
    const before = this.source;
    const renewed = [...this.renewed];
    const source = this.options.open(this.url());
    this.source = source;
    // From here on the position is that of the new stream: of the old one nothing more counts.
    before?.close();
    const hear = (): void => {
      if (this.source === source) this.listen();
    };
    source.onopen = () => {
      hear();
      this.failures = 0;
      this.become({ kind: "live" });
    };
    source.onerror = () => {
      const isRefused = source.readyState === REFUSED;
      source.close();
      if (this.source !== source) return;
      this.close();
      // The position may be what is refused, as after a backup was restored. Without one the runs begin with snapshots.
      if (isRefused) this.position = null;
      this.retry();
    };
    source.addEventListener("batch", ({ data, lastEventId }) => {
      hear();
      if (this.source !== source) return;
      // The position of this stream names a run only after its snapshot.
      for (const runId of renewed.splice(0)) this.renewed.delete(runId);
      this.take(data, lastEventId);
    });
    source.addEventListener("ping", hear);
    this.listen();
  }

  /** Something was heard: wait for the next. */
  private listen(): void {
    if (this.silence !== null) clearTimeout(this.silence);
    this.silence = setTimeout(() => this.lose(), SILENT_MS);
  }

  private close(): void {
    if (this.silence !== null) clearTimeout(this.silence);
    this.silence = null;
    this.source?.close();
    this.source = null;
  }

  private url(): string {
    const query = new URLSearchParams({ snapshot: "true", coalesceMs: String(COALESCE_MS) });
    const runs = [...this.runs.keys()].slice(-MAX_RUNS);
    if (runs.length > 0) query.set("runs", runs.join(","));
    const position = positionFor(
      this.position,
      runs.filter((run) => !this.renewed.has(run)),
    );
    if (position !== "") query.set("lastEventId", position);
    if (this.wantsLoads) query.set("workerLoad", "true");
    return `/api/v1/stream?${query}`;
  }

  private take(data: string, position: string): void {
    const { events } = JSON.parse(data) as { events: readonly StreamItem[] };
    this.position = readPosition(position);
    const tenant: TenantEvent[] = [];
    const byRun = new Map<string, RunEvent[]>();
    for (const event of events) {
      if (event.runId === undefined) tenant.push({ type: event.type, data: event.data });
      else {
        const known = byRun.get(event.runId);
        if (known === undefined) byRun.set(event.runId, [event]);
        else known.push(event);
      }
    }
    if (tenant.length > 0) this.options.onTenant(tenant);
    for (const [runId, some] of byRun) this.options.onRun(runId, some);
  }

  private retry(): void {
    if (this.failures === 0) this.since = Date.now();
    const inSeconds = RETRY_S[Math.min(this.failures, RETRY_S.length - 1)] ?? 30;
    this.failures += 1;
    this.become(
      this.failures > OFFLINE_AFTER
        ? { kind: "offline", since: this.since }
        : { kind: "reconnecting", inSeconds },
    );
    this.plan(() => this.connect(), inSeconds * 1000);
  }

  private become(state: LiveState): void {
    this.state = state;
    this.options.onState(state);
  }
}
