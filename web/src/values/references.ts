/** References in values: to what a worker keeps, and to secrets. A value never holds a secret itself. */

/** What a worker keeps: a file, a picture, an open page of a browser. */
export interface AstraRef {
  readonly resourceId: string;
  readonly workerId: string;
  readonly type: string;
  readonly sizeBytes: number | null;
  readonly mime: string | null;
  readonly name: string;
}

type Fields = Readonly<Record<string, unknown>>;

export const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const textOf = (value: unknown): string | null => (typeof value === "string" && value !== "" ? value : null);
const numberOf = (value: unknown): number | null => (typeof value === "number" ? value : null);

/** The reference that a value is; null if it is none. */
export function referenceOf(value: unknown): AstraRef | null {
  if (!isFields(value)) return null;
  const inner = isFields(value.resourceRef) ? value.resourceRef : null;
  if (inner === null) return null;
  return makeReference(inner, isFields(value.metadata) ? value.metadata : {});
}

/** An artifact as the API lists it. */
export function artifactReference(artifact: {
  readonly resourceId: string;
  readonly workerId: string;
  readonly type: string;
  readonly sizeBytes: number | null;
  readonly metadata: unknown;
}): AstraRef {
  const found = makeReference(
    { ...artifact },
    isFields(artifact.metadata) ? artifact.metadata : {},
  ) as AstraRef;
  return { ...found, sizeBytes: artifact.sizeBytes };
}

function makeReference(inner: Fields, more: Fields): AstraRef | null {
  const resourceId = textOf(inner.resourceId);
  const workerId = textOf(inner.workerId);
  if (resourceId === null || workerId === null) return null;
  const own = isFields(inner.metadata) ? inner.metadata : {};
  return {
    resourceId,
    workerId,
    type: textOf(inner.type) ?? "file",
    sizeBytes: numberOf(inner.sizeBytes) ?? numberOf(more.sizeBytes),
    mime: textOf(inner.mime) ?? textOf(own.mime) ?? textOf(more.mime),
    name: textOf(own.name) ?? textOf(more.name) ?? resourceId.split("/").at(-1) ?? resourceId,
  };
}

/** The name of the secret that stands in the place of a value. */
export function secretOf(value: unknown): string | null {
  if (!isFields(value) || !isFields(value.secretRef)) return null;
  return textOf(value.secretRef.name) ?? "";
}

/** Where a browser gets it. `isInline` asks for a preview; the scheduler sends what could act as a page as a file. */
export function addressOf(reference: Pick<AstraRef, "resourceId" | "workerId">, isInline = false): string {
  const path = reference.resourceId.split("/").map(encodeURIComponent).join("/");
  const query = new URLSearchParams({ workerId: reference.workerId });
  if (isInline) query.set("inline", "true");
  return `/api/v1/artifacts/${path}?${query}`;
}

export type Media = "image" | "video" | "audio" | "json" | "table" | "markdown" | "text" | "file";

const BY_ENDING: Readonly<Record<string, Media>> = {
  png: "image",
  jpg: "image",
  jpeg: "image",
  gif: "image",
  webp: "image",
  svg: "file",
  mp4: "video",
  webm: "video",
  mp3: "audio",
  wav: "audio",
  ogg: "audio",
  json: "json",
  csv: "table",
  md: "markdown",
  txt: "text",
  log: "text",
};

/** How a file can be shown. What is not known is a file to download. */
export function mediaOf(reference: Pick<AstraRef, "mime" | "name" | "type">): Media {
  const mime = reference.mime?.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  if (mime === "image/svg+xml") return "file";
  for (const kind of ["image", "video", "audio"] as const) if (mime.startsWith(`${kind}/`)) return kind;
  if (mime === "application/json" || reference.type === "astraflow.value") return "json";
  if (mime === "text/csv") return "table";
  if (mime === "text/markdown") return "markdown";
  if (mime === "text/html") return "file";
  if (mime.startsWith("text/")) return "text";
  if (mime !== "" && mime !== "application/octet-stream") return "file";
  const ending = reference.name.includes(".") ? (reference.name.split(".").at(-1)?.toLowerCase() ?? "") : "";
  return BY_ENDING[ending] ?? "file";
}
