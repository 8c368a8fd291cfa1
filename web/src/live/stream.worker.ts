/** The shared worker: one connection for all tabs of a browser. */

import type { Source } from "./connection";
import type { ToTab, ToWorker } from "./messages";
import { Tabs } from "./tabs";

const tabs = new Tabs({
  open: (url) => new EventSource(url) as unknown as Source,
  locks: navigator.locks,
});

addEventListener("connect", (event) => {
  const port = (event as MessageEvent).ports[0];
  if (port === undefined) return;
  const take = tabs.enter((message: ToTab) => port.postMessage(message));
  port.onmessage = ({ data }: MessageEvent<ToWorker>) => take(data);
});
