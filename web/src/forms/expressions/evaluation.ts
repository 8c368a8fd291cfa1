/**
 * The little of the language that a browser evaluates exactly: names with their members, plain values, and texts with
 * such names in them. All else is evaluated by the scheduler.
 */

import type { Json, JsonFields } from "../../model/json/tree";

/** What the parts of an expression can name. */
export type Names = Readonly<Record<string, Json | undefined>>;

export type Evaluation =
  | { readonly kind: "value"; readonly value: Json }
  | { readonly kind: "missing"; readonly name: string }
  | { readonly kind: "later" };

const LATER: Evaluation = { kind: "later" };
const NAME = /[A-Za-z_][A-Za-z0-9_]*/y;
const MEMBER = /\s*\.\s*([A-Za-z_][A-Za-z0-9_]*)/y;
const ITEM = /\s*\[\s*(?:"([^"\\]*)"|'([^'\\]*)'|(-?[0-9]{1,9}))\s*\]/y;
const PLAIN_TEXT = /^(?:"([^"\\\n]*)"|'([^'\\\n]*)')$/;
const FORMATTED = /^f(?:"([^"\\\n]*)"|'([^'\\\n]*)')$/;
const WORDS: Readonly<Record<string, Json>> = {
  true: true,
  True: true,
  false: false,
  False: false,
  null: null,
  None: null,
};

export interface PlainPath {
  readonly root: string;
  readonly steps: readonly (string | number)[];
}

/** An expression that is a name with members and nothing else; null if it is more. */
export function plainPath(text: string): PlainPath | null {
  NAME.lastIndex = 0;
  const root = NAME.exec(text)?.[0];
  if (root === undefined) return null;
  const steps: (string | number)[] = [];
  let at = root.length;
  while (text.slice(at).trim() !== "") {
    MEMBER.lastIndex = at;
    ITEM.lastIndex = at;
    const member = MEMBER.exec(text);
    const item = member === null ? ITEM.exec(text) : null;
    const found = member ?? item;
    if (found === null) return null;
    steps.push(member?.[1] ?? item?.[1] ?? item?.[2] ?? Number(item?.[3]));
    at += found[0].length;
  }
  return { root, steps };
}

export function evaluate(expression: string, names: Names): Evaluation {
  const text = expression.trim();
  if (Object.hasOwn(WORDS, text)) return { kind: "value", value: WORDS[text] as Json };
  if (/^(0|-?[1-9][0-9]{0,14})$/.test(text)) return { kind: "value", value: Number(text) };
  const plain = PLAIN_TEXT.exec(text);
  if (plain !== null) return { kind: "value", value: plain[1] ?? plain[2] ?? "" };
  const formatted = FORMATTED.exec(text);
  if (formatted !== null) return evaluateText(formatted[1] ?? formatted[2] ?? "", names);
  const path = plainPath(text);
  return path === null ? LATER : evaluatePath(path, names, text);
}

function evaluatePath({ root, steps }: PlainPath, names: Names, text: string): Evaluation {
  if (!Object.hasOwn(names, root)) return LATER;
  let here = names[root];
  for (const step of steps) here = below(here, step);
  return here === undefined ? { kind: "missing", name: text } : { kind: "value", value: here };
}

function below(value: Json | undefined, step: string | number): Json | undefined {
  if (Array.isArray(value))
    return typeof step === "number" ? (value.at(step) as Json | undefined) : undefined;
  if (value === null || typeof value !== "object" || typeof step !== "string") return undefined;
  return Object.hasOwn(value, step) ? (value as JsonFields)[step] : undefined;
}

/** Numbers are left to the scheduler: a browser cannot tell 1.0 from 1, and the text of each differs. */
function evaluateText(text: string, names: Names): Evaluation {
  let made = "";
  for (const part of text.split(/(\{[^{}]*\})/)) {
    if (!part.startsWith("{")) {
      if (/[{}]/.test(part)) return LATER;
      made += part;
      continue;
    }
    const value = evaluate(part.slice(1, -1), names);
    if (value.kind !== "value") return value;
    if (typeof value.value === "string") made += value.value;
    else if (typeof value.value === "boolean" || value.value === null) made += String(value.value);
    else return LATER;
  }
  return { kind: "value", value: made };
}
