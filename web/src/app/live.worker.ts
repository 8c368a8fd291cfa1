/** The one event stream of a browser, shared by its tabs. It is open as long as a tab is. */

import type { LiveMessage, LiveState } from "./live";

const RETRY_S = [1, 2, 5, 10, 30] as const;
const OFFLINE_AFTER = 3;
const TYPES = [
  "run.status",
  "worker.online",
  "worker.degraded",
  "worker.draining",
  "worker.lost",
  "worker.offline",
];

const ports = new Set<MessagePort>();
let state: LiveState = { kind: "connecting" };
let source: EventSource | null = null;
let failures = 0;
let since = 0;

function tell(message: LiveMessage): void {
  for (const port of ports) port.postMessage(message);
}

function become(next: LiveState): void {
  state = next;
  tell({ kind: "state", state });
}

function open(): void {
  if (ports.size === 0 || source !== null) return;
  const stream = new EventSource("/api/v1/events");
  source = stream;
  stream.onopen = () => {
    failures = 0;
    become({ kind: "live" });
  };
  stream.onerror = () => {
    stream.close();
    source = null;
    retry();
  };
  for (const type of TYPES) stream.addEventListener(type, () => tell({ kind: "event", type }));
}

function retry(): void {
  if (failures === 0) since = Date.now();
  const inSeconds = RETRY_S[Math.min(failures, RETRY_S.length - 1)] ?? 30;
  failures += 1;
  become(failures > OFFLINE_AFTER ? { kind: "offline", since } : { kind: "reconnecting", inSeconds });
  setTimeout(open, inSeconds * 1000);
}

function leave(port: MessagePort): void {
  ports.delete(port);
  if (ports.size > 0) return;
  source?.close();
  source = null;
}

addEventListener("connect", (event) => {
  const port = (event as MessageEvent).ports[0];
  if (port === undefined) return;
  ports.add(port);
  port.onmessage = ({ data }) => {
    if (data === "leave") leave(port);
  };
  port.postMessage({ kind: "state", state } satisfies LiveMessage);
  open();
});
