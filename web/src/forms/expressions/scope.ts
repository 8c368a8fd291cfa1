/** Completion and preview of expressions at a place of the document. */

import type { CompletionList, CompletionOption } from "../../code/completion";
import type { NodeCatalog } from "../../model/catalog";
import { nodesOf, type WorkflowDocument } from "../../model/document";
import type { Json, JsonFields } from "../../model/json/tree";
import { texts } from "../../texts";
import type { ExpressionScope, Preview } from "../host";
import { evaluate, type Names } from "./evaluation";
import { FUNCTIONS } from "./functions";
import { type LastRun, type NameTree, nameOfNode, namesFor, type ScopeOptions } from "./names";
import { questionOf } from "./question";

const KEYWORDS = ["if", "else", "for", "in", "and", "or", "not", "true", "false", "null"];
const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Names with members of which the last one is being written: `nodes["Two words"].results.te`. */
const CHAIN =
  /([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*|\[(?:"[^"]*"|'[^']*'|\d+)\])*)\.([A-Za-z0-9_]*)$/;
const WORD = /(?:^|[^A-Za-z0-9_."'])([A-Za-z_][A-Za-z0-9_]*)?$/;

function stepsOf(chain: string): readonly string[] {
  return [...chain.matchAll(/[A-Za-z_][A-Za-z0-9_]*|"([^"]*)"|'([^']*)'/g)].map(
    ([whole, double, single]) => double ?? single ?? whole,
  );
}

export function completeAt(before: string, names: readonly NameTree[]): CompletionList | null {
  const chain = CHAIN.exec(before);
  if (chain !== null) return completeMembers(before, chain[1] ?? "", chain[2] ?? "", names);
  const word = WORD.exec(before);
  if (word === null || isInText(before)) return null;
  return { from: before.length - (word[1]?.length ?? 0), options: rootOptions(names) };
}

/** Whether a text is open, in which there are no names. Braces of a formatted text have some. */
function isInText(before: string): boolean {
  const open = /(f?)(["'])(?:(?!\2)[^\\]|\\.)*$/.exec(before.replace(/(["'])(?:(?!\1)[^\\]|\\.)*\1/g, ""));
  return open !== null && !(open[1] === "f" && /\{[^{}]*$/.test(open[0]));
}

function completeMembers(
  before: string,
  chain: string,
  word: string,
  names: readonly NameTree[],
): CompletionList | null {
  let here: readonly NameTree[] = names;
  for (const step of stepsOf(chain)) here = here.find((one) => one.name === step)?.members ?? [];
  if (here.length === 0) return null;
  const isPlain = here.every((one) => IDENTIFIER.test(one.name));
  // A name with spaces stands in brackets, so that the point goes away with it.
  const from = before.length - word.length - (isPlain ? 0 : 1);
  return { from, options: here.map((one, place) => memberOption(one, isPlain, here.length - place)) };
}

function memberOption(one: NameTree, isPlain: boolean, rank: number): CompletionOption {
  const isName = IDENTIFIER.test(one.name);
  const label = isPlain ? one.name : `.${one.name}`;
  return {
    label,
    insert: isName ? label : `[${JSON.stringify(one.name)}]`,
    detail: one.detail,
    ...(one.info === undefined ? {} : { info: one.info }),
    kind: "property",
    rank: Math.min(rank, 90),
  };
}

function rootOptions(names: readonly NameTree[]): readonly CompletionOption[] {
  return [
    ...names.map(
      (one): CompletionOption => ({ label: one.name, detail: one.detail, kind: "name", rank: 50 }),
    ),
    ...FUNCTIONS.map(
      (one): CompletionOption => ({
        label: one.name,
        insert: `${one.name}(`,
        detail: `(${one.takes})`,
        info: one.help,
        kind: "function",
        rank: 0,
      }),
    ),
    ...KEYWORDS.map((label): CompletionOption => ({ label, kind: "keyword", rank: -20 })),
  ];
}

/** The values that names had in the last run. Items of maps are many, so that they have no one value. */
export function valuesOf(document: WorkflowDocument, run: LastRun, edge: ScopeOptions["edge"]): Names {
  const nodes: Record<string, Json> = {};
  for (const node of nodesOf(document)) {
    const ran = run.steps.get(node.id);
    if (ran === undefined) continue;
    const value: JsonFields = {
      state: ran.state,
      error: ran.error ?? null,
      ...(ran.results === undefined ? {} : { results: ran.results }),
    };
    nodes[node.id] = value;
    nodes[nameOfNode(document, node)] = value;
  }
  const source = edge === undefined ? undefined : run.steps.get(edge.source.node);
  return {
    inputs: run.inputs ?? {},
    nodes,
    run: { id: run.id, workflowId: run.workflowId, createdAt: run.createdAt },
    ...(source === undefined ? {} : { results: source.results, error: source.error ?? null }),
  };
}

export function previewOf(expression: string, names: Names | null): Preview {
  const words = texts.forms.preview;
  if (expression.trim() === "") return { kind: "missing", reason: words.nothing };
  if (/^\s*secrets\.\w+\s*$/.test(expression)) return { kind: "missing", reason: words.secret };
  const found = evaluate(expression, names ?? {});
  if (found.kind === "value") return found;
  if (names === null) return { kind: "missing", reason: words.noRun };
  return found.kind === "missing" ? { kind: "missing", reason: words.missing(found.name) } : found;
}

export function expressionScope(
  document: WorkflowDocument,
  catalog: NodeCatalog,
  run: LastRun | null,
  options: ScopeOptions,
): ExpressionScope {
  // Made when first asked for: most fields are never an expression.
  let trees: readonly NameTree[] | undefined;
  let values: Names | null | undefined;
  return {
    complete(before) {
      trees ??= namesFor(document, catalog, run, options);
      return completeAt(before, trees);
    },
    preview(expression) {
      if (values === undefined) values = run === null ? null : valuesOf(document, run, options.edge);
      return previewOf(expression, values);
    },
    question: (expression) => questionOf(expression, document, run, options),
  };
}
