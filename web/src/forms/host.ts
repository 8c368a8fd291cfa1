/** What the fields of a form share. */

import { createContext, useContext } from "react";
import type { CompletionList } from "../code/completion";
import type { Json } from "../model/json/tree";
import type { Question } from "./expressions/question";

export type Preview =
  | { readonly kind: "value"; readonly value: Json }
  /** There is no run to read from, or the run has no such value. */
  | { readonly kind: "missing"; readonly reason: string }
  /** The browser cannot evaluate it. */
  | { readonly kind: "later" };

/** What expressions of a form may name. The texts have no `=` in front. */
export interface ExpressionScope {
  complete(before: string): CompletionList | null;
  preview(expression: string): Preview;
  /** What to ask the scheduler about an expression that cannot be evaluated here; null if there is nothing to ask. */
  question(expression: string): Question | null;
}

export interface FieldError {
  /** A JSON pointer into the value of the form. */
  readonly pointer: string;
  readonly message: string;
}

export interface FormHost {
  readonly isReadOnly: boolean;
  /** Each keystroke is a change; else a change is what a person has finished. */
  readonly isLive: boolean;
  /** What the step produced, for fields that show results. */
  readonly results: Json | undefined;
  readonly errors: readonly FieldError[];
  readonly expressions: ExpressionScope | null;
  /** Where a value comes from by an edge, by pointers: what is set here counts only if the edge brings nothing. */
  readonly wired: ReadonlyMap<string, string> | undefined;
  /** Only fields that are marked so may be expressions. */
  readonly isMarked: boolean;
  /** In front of the pointers of the fields. */
  readonly pointer: string;
  /** The text of a value as its author wrote it. */
  sourceAt(path: readonly string[]): string | undefined;
  /** Undefined removes the value. `text` is the JSON that was typed, where numbers keep their form. */
  change(path: readonly string[], value: Json | undefined, text?: string): void;
}

export const FormContext = createContext<FormHost | null>(null);

export function useForm(): FormHost {
  const host = useContext(FormContext);
  if (host === null) throw new Error("there is no form around");
  return host;
}
