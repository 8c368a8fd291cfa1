/** What can be written at the end of a text. */

export interface CompletionOption {
  readonly label: string;
  /** What is put there, if it is not the label. */
  readonly insert?: string;
  readonly detail?: string;
  readonly info?: string;
  readonly kind: "name" | "function" | "keyword" | "property";
  /** Higher stands first. */
  readonly rank?: number;
}

export interface CompletionList {
  /** Where the word begins that is completed: an offset in the text. */
  readonly from: number;
  readonly options: readonly CompletionOption[];
}
