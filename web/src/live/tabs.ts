/** The tabs of a browser that share one connection. It is open as long as a tab is. */

import { Connection, type Source } from "./connection";
import type { ToTab, ToWorker } from "./messages";
import { type Locks, whenFree } from "./tabLock";

interface Tab {
  readonly tell: (message: ToTab) => void;
  readonly runs: Map<string, number>;
  wantsLoads: boolean;
}

interface Options {
  readonly open: (url: string) => Source;
  /** Missing where the browser offers none. */
  readonly locks?: Locks | undefined;
}

export class Tabs {
  private readonly tabs = new Set<Tab>();
  private readonly connection: Connection;

  constructor(private readonly options: Options) {
    this.connection = new Connection({
      open: options.open,
      onState: (state) => this.tell({ kind: "state", state }),
      onTenant: (events) => this.tell({ kind: "tenant", events }),
      onRun: (runId, events) => {
        for (const tab of this.tabs) if (tab.runs.has(runId)) tab.tell({ kind: "run", runId, events });
      },
    });
  }

  /** One more tab. Returns what takes its messages. */
  enter(tell: (message: ToTab) => void): (message: ToWorker) => void {
    const tab: Tab = { tell, runs: new Map(), wantsLoads: false };
    this.tabs.add(tab);
    tell({ kind: "state", state: this.connection.state });
    this.connection.start();
    return (message) => this.take(tab, message);
  }

  private tell(message: ToTab): void {
    for (const tab of this.tabs) tab.tell(message);
  }

  private take(tab: Tab, message: ToWorker): void {
    const { connection } = this;
    switch (message.kind) {
      case "held":
        if (this.options.locks !== undefined)
          whenFree(this.options.locks, message.lock, () => this.leave(tab));
        break;
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
        this.countLoads();
        break;
      case "wake":
        connection.wake();
        break;
      case "lose":
        connection.lose();
        break;
      case "leave":
        this.leave(tab);
    }
  }

  /** It says so itself, or its lock is free because it has crashed. */
  private leave(tab: Tab): void {
    if (!this.tabs.delete(tab)) return;
    for (const [runId, count] of tab.runs)
      for (let one = 0; one < count; one += 1) this.connection.unfollow(runId);
    this.countLoads();
    if (this.tabs.size === 0) this.connection.stop();
  }

  private countLoads(): void {
    this.connection.wantLoads([...this.tabs].some((one) => one.wantsLoads));
  }
}
