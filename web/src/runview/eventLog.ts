/** The events of a run from its first on, as the scheduler has stored them. */

import type { RunEvent } from "../model/run/events";

/** One event of a stream of server-sent events; null for a comment. */
export function readBlock(block: string): RunEvent | null {
  const data = block
    .split("\n")
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice(5).trimStart())
    .join("\n");
  return data === "" ? null : (JSON.parse(data) as RunEvent);
}

/**
 * Read what is stored, in batches, up to the event `last`. The stream would go on for as long as the run does; from
 * there the one stream of the browser has the rest, so that this connection is given back.
 */
export async function readStoredEvents(
  runId: string,
  last: number,
  take: (events: readonly RunEvent[]) => void,
  signal: AbortSignal,
): Promise<void> {
  const leave = new AbortController();
  const stop = (): void => leave.abort();
  signal.addEventListener("abort", stop);
  try {
    const answer = await fetch(`/api/v1/events?${new URLSearchParams({ runId, lastEventId: "0" })}`, {
      signal: leave.signal,
    });
    if (!answer.ok || answer.body === null) throw new Error(`${answer.status} ${answer.statusText}`);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let waiting = "";
    let isDone = false;
    while (!isDone) {
      const piece = await reader.read();
      if (piece.done) break;
      waiting += piece.value.replaceAll("\r", "");
      const blocks = waiting.split("\n\n");
      waiting = blocks.pop() ?? "";
      const events = blocks.flatMap((block) => readBlock(block) ?? []);
      isDone = events.some((event) => (event.id ?? 0) >= last);
      if (events.length > 0) take(events.filter((event) => (event.id ?? 0) <= last));
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    signal.removeEventListener("abort", stop);
    leave.abort();
  }
}
