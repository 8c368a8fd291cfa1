/** One line about an event, for people. */

import type { NodeStateBody, OutputBody, RunError, RunEvent } from "../model/run/events";

const CHARS = 160;
const short = (text: string): string => (text.length > CHARS ? `${text.slice(0, CHARS)}…` : text);

export function nodeIdOf(event: RunEvent): string | null {
  const id = (event.data as { readonly nodeId?: unknown } | null)?.nodeId;
  return typeof id === "string" ? id : null;
}

export function eventWords(event: RunEvent): string {
  const data = (event.data ?? {}) as Readonly<Record<string, unknown>>;
  switch (event.type) {
    case "run.status":
      return [data.status, data.cancelRequested === true ? "cancel requested" : null, errorWords(data.error)]
        .filter((one) => one != null)
        .join(" · ");
    case "node.state": {
      const body = data as unknown as NodeStateBody;
      const parts = [
        body.status,
        body.attempt ? `attempt ${body.attempt}` : null,
        body.waitingFor?.detail || null,
        body.progress == null ? null : `${Math.round(body.progress * 100)} %`,
        body.message,
        errorWords(body.error),
      ];
      return short(parts.filter((one) => one != null).join(" · "));
    }
    case "node.error":
      return short(`attempt ${String(data.attempt)} · ${errorWords(data.error) ?? ""}`);
    case "node.result.delta": {
      const body = data as unknown as OutputBody;
      return short(
        `${body.channel} · ${body.text ?? `${body.mimeType} ${body.dataBase64?.length ?? 0}`}`.trim(),
      );
    }
    default: {
      const { nodeId: _node, scopePath: _scope, ...rest } = data;
      return short(JSON.stringify(rest));
    }
  }
}

function errorWords(error: unknown): string | null {
  const given = error as RunError | null | undefined;
  if (given == null) return null;
  return `${given.code}${given.message ? `: ${given.message.split("\n", 1)[0]}` : ""}`;
}
