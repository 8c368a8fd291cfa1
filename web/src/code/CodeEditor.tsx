import { lazy, Suspense } from "react";
import { chunk } from "../app/chunks";
import classes from "./code.module.css";
import type { CompletionList } from "./completion";
import type { CodeLanguage } from "./languages";

export interface CodeMark {
  /** Offsets in the text. */
  readonly from: number;
  readonly to: number;
  readonly message: string;
  readonly severity?: "error" | "warning" | "info";
}

export interface CodeEditorProps {
  readonly value: string;
  readonly onChange?: (value: string) => void;
  /** When the person is done: the focus left. */
  readonly onBlur?: () => void;
  /** What a screen reader calls it. */
  readonly label: string;
  readonly language?: CodeLanguage | (string & {}) | undefined;
  readonly isReadOnly?: boolean;
  /** One line: Enter is left to the page, and Tab moves on. */
  readonly isSingleLine?: boolean;
  readonly minLines?: number;
  readonly maxLines?: number;
  /** As high as what is around it, whatever its text. */
  readonly fills?: boolean;
  readonly hasLineNumbers?: boolean;
  readonly hasFocus?: boolean;
  readonly placeholder?: string | undefined;
  readonly marks?: readonly CodeMark[];
  readonly complete?: ((before: string) => CompletionList | null) | undefined;
  readonly id?: string | undefined;
  readonly describedBy?: string | undefined;
  readonly isInvalid?: boolean;
}

/** Loads CodeMirror; it is there at once afterwards. */
export const loadEditor = chunk(() => import("./EditorHost"));

const EditorHost = lazy(loadEditor);
const LINE = 18;
const PADDING = 10;

/** A code editor. CodeMirror is loaded when the first one is shown; until then its text stands there, in the same place. */
export function CodeEditor(props: CodeEditorProps) {
  const { value, isSingleLine = false, minLines = isSingleLine ? 1 : 3, maxLines = 18 } = props;
  const lines = Math.min(Math.max(value.split("\n").length, minLines), maxLines);
  const height = lines * LINE + PADDING;
  const waiting = (
    <pre className={classes.waiting} style={{ height }}>
      {value}
    </pre>
  );
  return (
    <Suspense fallback={waiting}>
      <EditorHost {...props} minLines={minLines} maxLines={maxLines} />
    </Suspense>
  );
}
