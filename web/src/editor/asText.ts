/** A workflow that is edited as text: because somebody wants to, or because it cannot be drawn. */

import { drawingProblem, isDrawable, openDocument, textOf, type WorkflowDocument } from "../model/document";
import { spread } from "../model/json/printing";
import { type JsonPath, JsonTextError, spanAt } from "../model/json/tree";
import { texts } from "../texts";
import type { FoundProblem } from "./problemPlaces";
import { documentOf, type EditorSession } from "./session";

export const isAsText = (session: EditorSession): boolean =>
  session.ui.getState().asText || !isDrawable(documentOf(session));

/** A place of the text, as the code editor marks it. */
export interface TextMark {
  readonly from: number;
  readonly to: number;
  readonly message: string;
  readonly severity: "error" | "warning";
}

export interface ReadText {
  /** Null: the text is not JSON. */
  readonly document: WorkflowDocument | null;
  /** Why it cannot be saved, or cannot be drawn; null if it is fine. */
  readonly problem: string | null;
  readonly marks: readonly TextMark[];
}

export const lineOf = (text: string, offset: number): number => text.slice(0, offset).split("\n").length;

const pathOf = (pointer: string): JsonPath =>
  pointer
    .split("/")
    .slice(1)
    .map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));

/** What somebody has typed, with the places of all that is wrong with it. `found` is about the same text. */
export function readText(text: string, found: readonly FoundProblem[]): ReadText {
  const words = texts.editor.asText;
  let document: WorkflowDocument;
  try {
    document = openDocument(text);
  } catch (error) {
    if (!(error instanceof JsonTextError)) throw error;
    const from = Math.min(error.offset, text.length);
    const mark: TextMark = { from, to: from + 1, message: error.message, severity: "error" };
    return { document: null, problem: words.notJson(lineOf(text, from), error.message), marks: [mark] };
  }
  const at = (path: JsonPath, message: string, severity: TextMark["severity"]): TextMark => {
    const { from, to } = spanAt(document.root, path);
    const start = document.before.length + from;
    // Of a large part the first line is marked: a mark over all of it would say nothing.
    const end = text.indexOf("\n", start);
    return {
      from: start,
      to: Math.min(document.before.length + to, end < 0 ? text.length : end),
      message,
      severity,
    };
  };
  const drawing = drawingProblem(document);
  const marks = found.map((one) => at(pathOf(one.pointer), one.message, one.severity));
  if (drawing === null) return { document, problem: null, marks };
  const first = at(drawing.path, drawing.message, "error");
  return {
    document,
    problem: words.notDrawable(lineOf(text, first.from), drawing.message),
    marks: [first, ...marks],
  };
}

/** The text of a document, for people: what was written on one line is spread over several. */
export function shownText(document: WorkflowDocument): string {
  const text = textOf(document);
  return text.trimEnd().includes("\n") ? text : `${spread(document.root)}\n`;
}

/** Take a text as the document: one entry of the history. False if it is not JSON. */
export function writeText(session: EditorSession, text: string): boolean {
  const { document } = readText(text, []);
  if (document === null) return false;
  session.editor.actions.edit(texts.editor.did.editText, (before) =>
    text === textOf(before) || text === shownText(before) ? before : document,
  );
  return true;
}
