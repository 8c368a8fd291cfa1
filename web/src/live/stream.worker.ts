/** The shared worker: one connection for all tabs of a browser. It is open as long as a tab is. */

import { Connection, type Source } from "./connection";
import type { ToTab, ToWorker } from "./messages";

interface Tab {
  readonly port: MessagePort;
  readonly runs: Map<string, number>;
  wantsLoads: boolean;
}

const tabs = new Set<Tab>();

function tell(message: ToTab): void {
  for (const tab of tabs) tab.port.postMessage(message);
}

const connection = new Connection({
  open: (url) => new EventSource(url) as unknown as Source,
  onState: (state) => tell({ kind: "state", state }),
  onTenant: (events) => tell({ kind: "tenant", events }),
  onRun: (runId, events) => {
    for (const tab of tabs) {
      if (tab.runs.has(runId)) tab.port.postMessage({ kind: "run", runId, events } satisfies ToTab);
    }
  },
});

function take(tab: Tab, message: ToWorker): void {
  switch (message.kind) {
    case "follow":
      tab.runs.set(message.runId, (tab.runs.get(message.runId) ?? 0) + 1);
      connection.follow(message.runId);
      break;
    case "unfollow": {
      const left = (tab.runs.get(message.runId) ?? 0) - 1;
      if (left > 0) tab.runs.set(message.runId, left);
      else tab.runs.delete(message.runId);
      connection.unfollow(message.runId);
      break;
    }
    case "refresh":
      connection.refresh(message.runId);
      break;
    case "loads":
      tab.wantsLoads = message.isWanted;
      connection.wantLoads([...tabs].some((one) => one.wantsLoads));
      break;
    case "wake":
      connection.wake();
      break;
    case "lose":
      connection.lose();
      break;
    case "leave":
      leave(tab);
  }
}

function leave(tab: Tab): void {
  if (!tabs.delete(tab)) return;
  for (const [runId, count] of tab.runs) for (let one = 0; one < count; one += 1) connection.unfollow(runId);
  connection.wantLoads([...tabs].some((one) => one.wantsLoads));
  if (tabs.size === 0) connection.stop();
}

addEventListener("connect", (event) => {
  const port = (event as MessageEvent).ports[0];
  if (port === undefined) return;
  const tab: Tab = { port, runs: new Map(), wantsLoads: false };
  tabs.add(tab);
  port.onmessage = ({ data }: MessageEvent<ToWorker>) => take(tab, data);
  port.postMessage({ kind: "state", state: connection.state } satisfies ToTab);
  connection.start();
});
