/** Workflows as files and on the clipboard. */

import { isDrawable, openDocument, textOf, type WorkflowDocument } from "../model/document";
import { JsonTextError } from "../model/json/tree";
import { texts } from "../texts";
import { pasteText } from "./changing";
import { nameOf } from "./parts";
import { type EditorSession, notify } from "./session";

const words = texts.editor.notices;

/** A text that somebody brought: a document, or why it is none. */
export function readWorkflow(text: string): WorkflowDocument | string {
  try {
    const document = openDocument(text);
    return isDrawable(document) ? document : words.notWorkflow;
  } catch (error) {
    if (error instanceof JsonTextError) return words.notJson;
    throw error;
  }
}

/** The steps of a file are added to what is open. */
export async function importFile(session: EditorSession, file: File): Promise<void> {
  const text = await file.text();
  const read = readWorkflow(text);
  if (typeof read === "string") notify(session, read, "error");
  else if (pasteText(session, text)) notify(session, words.imported);
}

const fileName = (name: string): string =>
  `${
    name
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, "-")
      .replaceAll(/^-|-$/g, "") || "workflow"
  }.json`;

export function downloadText(name: string, text: string): void {
  const link = window.document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = fileName(name);
  link.click();
  URL.revokeObjectURL(link.href);
}

export const downloadDocument = (document: WorkflowDocument): void =>
  downloadText(nameOf(document), textOf(document));

/** Ask for a file; null if none was chosen. */
export function chooseFile(): Promise<File | null> {
  return new Promise((resolve) => {
    const field = window.document.createElement("input");
    field.type = "file";
    field.accept = ".json,application/json";
    field.onchange = () => resolve(field.files?.[0] ?? null);
    field.oncancel = () => resolve(null);
    field.click();
  });
}
