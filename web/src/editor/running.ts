/** Saving and running what is open. */

import { ApiError } from "../api/client";
import { flushFields } from "../forms/useDraft";
import { useLive } from "../live/live";
import { nodesOf, valueAt } from "../model/document";
import type { JsonFields } from "../model/json/tree";
import { texts } from "../texts";
import { tick } from "../tour/tour";
import { documentUpTo } from "./parts";
import { startRun } from "./requests";
import { chosen } from "./selection";
import { documentOf, type EditorSession, notify } from "./session";

const words = texts.editor;

export const messageOf = (error: unknown): string =>
  error instanceof ApiError && error.errors[0] !== undefined
    ? `${error.message}: ${error.errors[0].message}`
    : error instanceof Error
      ? error.message
      : String(error);

/** Why nothing can be run just now; null if it can. */
export function runBlock(session: EditorSession, isOffline: boolean, errors: number): string | null {
  if (!session.mayRun) return words.run.notAllowed;
  if (isOffline) return words.run.offline;
  if (nodesOf(documentOf(session)).length === 0) return words.run.empty;
  return errors > 0 ? words.run.problems(errors) : null;
}

const isOffline = (): boolean => useLive.getState().state.kind === "offline";
const errorsOf = (session: EditorSession): number =>
  session.ui.getState().problems.filter((one) => one.severity === "error").length;

/** The inputs that the workflow declares. */
export function declaredInputs(session: EditorSession): JsonFields {
  const inputs = valueAt(documentOf(session), ["inputs"]);
  return inputs !== null && typeof inputs === "object" && !Array.isArray(inputs)
    ? (inputs as JsonFields)
    : {};
}

/** Whether an input has to be given before it can run. */
export const needsInputs = (session: EditorSession): boolean =>
  Object.values(declaredInputs(session)).some((input) => {
    const { required, default: usual } = input as JsonFields;
    return required === true && usual == null;
  });

export async function save(session: EditorSession): Promise<void> {
  // What is being typed counts, too.
  flushFields();
  await session.keeper()?.flush();
}

/** The version that the document is; null if it was edited since, or is a draft. */
function versionOf(session: EditorSession): number | null {
  const keeper = session.keeper();
  if (keeper === null) return session.openedVersion;
  return keeper.revision === 0 && !keeper.isDirty && keeper.version > 0 ? keeper.version : null;
}

async function submit(
  session: EditorSession,
  upTo: readonly string[] | null,
  inputs?: JsonFields,
): Promise<void> {
  flushFields();
  // Whoever mends something and runs it at once is not told of what was wrong before.
  if (errorsOf(session) > 0) await session.recheck.current?.();
  const blocked = runBlock(session, isOffline(), errorsOf(session));
  if (blocked !== null) {
    notify(session, blocked, "error");
    return;
  }
  session.ui.setState({ isStarting: true, dialog: null });
  try {
    await save(session);
    const document = documentOf(session);
    const runId = await startRun({
      workflowId: session.workflowId,
      document: upTo === null ? document : documentUpTo(document, upTo),
      version: upTo === null ? versionOf(session) : null,
      ...(inputs === undefined ? {} : { inputs }),
    });
    session.ui.setState({ runId });
    tick("run");
  } catch (error) {
    notify(session, messageOf(error), "error");
  } finally {
    session.ui.setState({ isStarting: false });
  }
}

/** Run all of it. What needs inputs asks for them first. */
export async function run(session: EditorSession, inputs?: JsonFields): Promise<void> {
  if (inputs === undefined && needsInputs(session)) {
    session.ui.setState({ dialog: "run" });
    return;
  }
  await submit(session, null, inputs);
}

/** Run what is selected, with everything that it needs. */
export async function runToHere(session: EditorSession): Promise<void> {
  const ids = chosen(session).nodes.map((node) => node.id);
  if (ids.length === 0) notify(session, words.run.selectFirst);
  else await submit(session, ids);
}
