/** Publish a package from files that somebody chose or dropped: an archive, and its signature if there is one. */

import { ApiError, csrf, type Problem } from "../../api/client";
import type { components } from "../../api/schema";

export type PackageVersion = components["schemas"]["PackageVersion"];

export interface Chosen {
  readonly archive: File;
  readonly signature: File | null;
}

/** The archive among files, with the signature beside it; null if there is no archive. */
export function choose(files: readonly File[]): Chosen | null {
  const archive = files.find((file) => file.name.endsWith(".cwx"));
  if (archive === undefined) return null;
  const signature = files.find((file) => file.name.startsWith(archive.name) && file !== archive);
  return { archive, signature: signature ?? null };
}

function base64(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

/** Uploads with progress, which `fetch` does not tell of. */
export async function publish(chosen: Chosen, onProgress: (part: number) => void): Promise<PackageVersion> {
  const signature =
    chosen.signature === null ? null : base64(new Uint8Array(await chosen.signature.arrayBuffer()));
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", "/api/v1/packages");
    request.setRequestHeader("content-type", "application/octet-stream");
    request.setRequestHeader("x-csrf-token", csrf());
    if (signature !== null) request.setRequestHeader("astra-signature", signature);
    request.responseType = "json";
    request.upload.onprogress = (event) => {
      if (event.lengthComputable) onProgress(event.loaded / event.total);
    };
    request.onload = () => {
      if (request.status < 300) return resolve(request.response as PackageVersion);
      const problem = request.response as Problem | null;
      const requestId = request.getResponseHeader("x-request-id");
      reject(
        new ApiError(
          problem?.detail ?? problem?.title ?? request.statusText,
          request.status,
          problem?.code ?? "",
          requestId,
        ),
      );
    };
    request.onerror = () => reject(new ApiError("The scheduler cannot be reached", 0, "", null));
    request.send(chosen.archive);
  });
}
