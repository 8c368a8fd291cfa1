/** Problems of a definition, with the codes, the pointers and the limits of the scheduler. */

import { isPrintable } from "../bindings";

export interface Problem {
  /** A JSON pointer (RFC 6901) into the document. */
  readonly pointer: string;
  readonly code: string;
  readonly message: string;
  /** The ids of the nodes that it is about, if it is about several. */
  readonly members?: readonly string[];
}

export const MAX_PROBLEMS = 100;
export const MAX_LABEL_CHARS = 256;
export const MAX_KEY_CHARS = 128;
export const MAX_DESCRIPTION_CHARS = 16_384;
export const MAX_EXPRESSION_CHARS = 4_096;
export const MAX_LIST_ITEMS = 1_024;
export const MAX_PORTS = 256;

/** What only the scheduler checks, with the reason. */
export const SERVER_ONLY: Readonly<Record<string, string>> = {
  "E.WORKFLOW.EXPRESSION": "expressions are compiled by the scheduler's own language",
  "E.WORKFLOW.PARAMETER": "values are checked by a whole implementation of JSON Schema",
  "E.WORKFLOW.SCHEMA": "so are schemas themselves",
  "E.WORKFLOW.CALL": "the workflows that are called are on the server",
  "E.PKG.YANKED": "the catalog lists what can be used",
};

export type Code =
  | "INVALID"
  | "CYCLE"
  | "SELF_EDGE"
  | "UNKNOWN_NODE"
  | "UNKNOWN_PORT"
  | "UNKNOWN_TYPE"
  | "UNKNOWN_PACKAGE"
  | "DOUBLE_INPUT"
  | "DUPLICATE_ID"
  | "BAD_ID"
  | "BAD_TEXT"
  | "BAD_PATH"
  | "LIMIT"
  | "EDGE_TYPE"
  | "INPUT";

const UNSEEN = /[\p{Cc}\u202a-\u202e\u2066-\u2069\p{Cs}]/u;
const SEEN = /[\t\n\r]/g;

export const pointerToken = (name: string): string => name.replaceAll("~", "~0").replaceAll("/", "~1");

/** Text as Python counts it: by code points. */
export const lengthOf = (text: string): number => [...text].length;

export class Problems {
  private readonly kept: Problem[] = [];
  count = 0;

  add(pointer: string, code: Code, message: string, members?: readonly string[]): void {
    this.count += 1;
    if (this.kept.length >= MAX_PROBLEMS) return;
    this.kept.push({ pointer, code: `E.WORKFLOW.${code}`, message, ...(members ? { members } : {}) });
  }

  checkText(pointer: string, text: string, limit: number): void {
    const length = lengthOf(text);
    if (length > limit) this.add(pointer, "LIMIT", `the text is longer than ${limit} characters: ${length}`);
    else if (!isPrintable(text) && UNSEEN.test(text.replace(SEEN, ""))) {
      this.add(pointer, "BAD_TEXT", "the text holds control or direction characters");
    }
  }

  checkKey(pointer: string, text: string, limit: number): void {
    if (text === "") this.add(pointer, "BAD_TEXT", "the text is empty");
    else this.checkText(pointer, text, limit);
  }

  checkCount(pointer: string, count: number, limit: number, what = "items"): boolean {
    if (count > limit) this.add(pointer, "LIMIT", `there are more than ${limit} ${what}: ${count}`);
    return count <= limit;
  }

  found(): readonly Problem[] {
    if (this.count <= MAX_PROBLEMS) return this.kept;
    const first = this.kept.slice(0, MAX_PROBLEMS - 1);
    const rest = this.count - first.length;
    return [...first, { pointer: "", code: "E.WORKFLOW.LIMIT", message: `and ${rest} more` }];
  }
}
