/** The languages that code is coloured in. Each is loaded when it is first needed. */

import type { Extension } from "@codemirror/state";

export const LANGUAGES = [
  "json",
  "python",
  "javascript",
  "typescript",
  "sql",
  "html",
  "markdown",
  "yaml",
  "expression",
] as const;
export type CodeLanguage = (typeof LANGUAGES)[number];

const ALIASES: Readonly<Record<string, CodeLanguage>> = {
  js: "javascript",
  jsx: "javascript",
  ts: "typescript",
  py: "python",
  md: "markdown",
  yml: "yaml",
  htm: "html",
  postgresql: "sql",
  sqlite: "sql",
};

/** The language of a name; undefined if it is shown as plain text. */
export function languageNamed(name: string | undefined): CodeLanguage | undefined {
  const lower = name?.toLowerCase() ?? "";
  if ((LANGUAGES as readonly string[]).includes(lower)) return lower as CodeLanguage;
  return Object.hasOwn(ALIASES, lower) ? ALIASES[lower] : undefined;
}

export async function loadLanguage(language: CodeLanguage): Promise<Extension> {
  switch (language) {
    case "json":
      return (await import("@codemirror/lang-json")).json();
    // An expression is a part of Python.
    case "python":
    case "expression":
      return (await import("@codemirror/lang-python")).pythonLanguage;
    case "javascript":
      return (await import("@codemirror/lang-javascript")).javascript();
    case "typescript":
      return (await import("@codemirror/lang-javascript")).javascript({ typescript: true });
    case "sql":
      return (await import("@codemirror/lang-sql")).sql();
    case "html":
      return (await import("@codemirror/lang-html")).html();
    case "markdown":
      return (await import("@codemirror/lang-markdown")).markdown();
    case "yaml":
      return (await import("@codemirror/lang-yaml")).yaml();
  }
}
