/** What the compiler must accept, and what it must refuse: an expected error that does not come is one. */

import type { Frame, FrameOf, HttpCompleted, HttpEnvelope } from "./astraflow_wire";

const hello: FrameOf<"control.handshake"> = {
  type: "control.handshake",
  id: "01J8ZQ5T9GQ4X7V2N3M1K0HABC",
  ts: "2026-01-15T10:00:00.000Z",
  tenant: "default",
  sender: { role: "worker", id: "w-1" },
  payload: {
    protocol: 2,
    auth: { mode: "token", token: "secret" },
    worker: {
      worker_instance_id: "w-1",
      incarnation: 1,
      worker_name: "w-1",
      version: "1",
      hostname: "h",
    },
  },
};

/** The type of a frame selects its payload. */
export function taskOf(frame: Frame): string | undefined {
  switch (frame.type) {
    case "biz.exec.dispatch":
      return frame.payload.task_id;
    case "control.session.accept":
      // @ts-expect-error: it is about no task
      return frame.payload.task_id;
    default:
      return undefined;
  }
}

/** The answer of an HTTP worker. */
export function done(envelope: HttpEnvelope): HttpCompleted {
  return { attempt: envelope.attempt, workerId: "w-1", outcome: "SUCCEEDED", output: {} };
}

// @ts-expect-error: no such outcome
export const failed: HttpCompleted = { attempt: 1, workerId: "w-1", outcome: "BROKEN" };
// @ts-expect-error: a worker must say who it is
export const nobody: HttpCompleted = { attempt: 1, outcome: "SUCCEEDED" };
// @ts-expect-error: another type has another payload
export const mixed: FrameOf<"control.register"> = { ...hello, type: "control.register" };

export const frames: Frame[] = [hello];
