/** What the editor asks of the scheduler. Documents are sent in their own bytes, never as JSON that was made anew. */

import { ApiError, api, dataOf } from "../api/client";
import { textOf, type WorkflowDocument } from "../model/document";
import { type JsonFields, nodeAt, parseNode, plainOf } from "../model/json/tree";
import type { Problem } from "../model/validation/problems";
import { newestOf } from "./newest";
import type { FoundProblem } from "./problemPlaces";

export interface Opened {
  readonly text: string;
  /** Of the draft; 0 if there is none. */
  readonly revision: number;
  /** The version that it was made from, or is; 0 if there is none. */
  readonly version: number;
  readonly savedAt: string | null;
  readonly savedBy: string | null;
}

const asText = { bodySerializer: (body: unknown): string => body as string } as const;

export async function readVersion(id: string, version?: number): Promise<Opened> {
  const answer = await api.GET("/api/v1/workflows/{id}", {
    params: { path: { id }, query: version === undefined ? {} : { version } },
    parseAs: "text",
  });
  const tag = answer.response.headers.get("etag") ?? "";
  return {
    text: dataOf(answer) as unknown as string,
    revision: 0,
    version: version ?? (Number(tag.replace(/^W\//, "").replaceAll('"', "")) || 0),
    savedAt: null,
    savedBy: null,
  };
}

async function readDraft(id: string): Promise<Opened> {
  const answer = await api.GET("/api/v1/workflows/{id}/draft", { params: { path: { id } }, parseAs: "text" });
  const root = parseNode(dataOf(answer) as unknown as string);
  const head = plainOf(root) as JsonFields;
  return {
    text: nodeAt(root, ["definition"])?.text ?? "{}",
    revision: Number(head.revision),
    version: Number(head.baseVersion),
    savedAt: String(head.updatedAt),
    savedBy: String(head.updatedBy),
  };
}

async function hasDraft(workflowId: string): Promise<boolean> {
  const page = dataOf(await api.GET("/api/v1/workflows/drafts", { params: { query: { workflowId } } }));
  return page.items.length > 0;
}

async function hasVersion(id: string): Promise<boolean> {
  const page = dataOf(await api.GET("/api/v1/workflows", { params: { query: { text: id } } }));
  return page.items.some((one) => one.id === id);
}

/** The draft if there is one, else the newest version; null if there is neither. */
export function readNewest(id: string, isNew = false): Promise<Opened | null> {
  return newestOf(id, isNew, {
    hasDraft,
    hasVersion,
    readDraft,
    readVersion: (one) => readVersion(one),
    isMissing: (error) => error instanceof ApiError && error.status === 404,
  });
}

/** Save the next revision of a draft; the new revision. */
export async function saveDraft(id: string, text: string, revision: number): Promise<number> {
  const answer = await api.PUT("/api/v1/workflows/{id}/draft", {
    params: { path: { id }, header: { "If-Match": `"${revision}"` } },
    body: text as never,
    ...asText,
  });
  return dataOf(answer).revision;
}

/** A new workflow, as a draft. */
export async function createDraft(made: { readonly id: string; readonly text: string }): Promise<string> {
  await saveDraft(made.id, made.text, 0);
  return made.id;
}

export async function publishDraft(
  id: string,
  revision: number,
  note: string,
  isForced: boolean,
): Promise<number> {
  const body = { note, revision, force: isForced };
  return dataOf(await api.POST("/api/v1/workflows/{id}/publish", { params: { path: { id } }, body })).version;
}

/** Delete a workflow with its versions and its draft. */
export async function deleteWorkflow(id: string): Promise<void> {
  await api.DELETE("/api/v1/workflows/{id}", { params: { path: { id } } });
}

export async function restoreAsDraft(id: string, version: number): Promise<void> {
  await api.POST("/api/v1/workflows/{id}/versions/{version}/restore", {
    params: { path: { id, version: String(version) } },
    body: { to: "draft", note: "", replace: true },
  });
}

/** The errors and warnings that the scheduler finds. */
export async function validateOnServer(text: string): Promise<readonly FoundProblem[]> {
  try {
    const answer = await api.POST("/api/v1/workflows/validate", { body: text as never, ...asText });
    const { warnings = [] } = dataOf(answer);
    return warnings.map((one) => ({ ...(one as Problem), severity: "warning" }));
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 422) throw error;
    return error.errors.map((one) => ({ ...(one as Problem), severity: "error" }));
  }
}

export interface RunOrder {
  readonly document: WorkflowDocument;
  /** The saved version that the document is; null if it is none. */
  readonly version: number | null;
  readonly workflowId: string;
  readonly inputs?: JsonFields;
}

/** Start a run; its id. A version is named, anything else is sent as it is. */
export async function startRun({ document, version, workflowId, inputs }: RunOrder): Promise<string> {
  const what =
    version === null
      ? `"workflow":${textOf(document)}`
      : `"workflowId":${JSON.stringify(workflowId)},"version":${version}`;
  const given = inputs === undefined ? "" : `,"inputs":${JSON.stringify(inputs)}`;
  const body = `{${what}${given},"usePinned":true}`;
  return dataOf(await api.POST("/api/v1/runs", { body: body as never, ...asText })).runId;
}

export async function cancelRun(runId: string): Promise<void> {
  await api.POST("/api/v1/runs/{runId}/cancel", { params: { path: { runId } } });
}

export async function listVersions(id: string) {
  return dataOf(
    await api.GET("/api/v1/workflows/{id}/versions", { params: { path: { id }, query: { limit: 100 } } }),
  ).items;
}

export async function listPins(id: string): Promise<ReadonlySet<string>> {
  const page = dataOf(await api.GET("/api/v1/workflows/{id}/pins", { params: { path: { id } } }));
  return new Set(page.items.map((pin) => pin.nodeId));
}

export async function pinResult(id: string, nodeId: string, runId: string): Promise<void> {
  await api.PUT("/api/v1/workflows/{id}/pins/{nodeId}", {
    params: { path: { id, nodeId } },
    body: { runId },
  });
}

export async function unpinResult(id: string, nodeId: string): Promise<void> {
  await api.DELETE("/api/v1/workflows/{id}/pins/{nodeId}", { params: { path: { id, nodeId } } });
}

/** The example to begin with. */
const FIRST_EXAMPLE = "hello";

export async function listExamples() {
  const { items } = dataOf(await api.GET("/api/v1/examples"));
  return items.toSorted(
    (one, other) => Number(other.id === FIRST_EXAMPLE) - Number(one.id === FIRST_EXAMPLE),
  );
}

export async function readExample(id: string): Promise<string> {
  const answer = await api.GET("/api/v1/examples/{id}", { params: { path: { id } }, parseAs: "text" });
  return dataOf(answer) as unknown as string;
}

export async function lastRunOf(workflowId: string): Promise<string | null> {
  const page = dataOf(await api.GET("/api/v1/runs", { params: { query: { workflowId, limit: 1 } } }));
  return page.items[0]?.runId ?? null;
}
