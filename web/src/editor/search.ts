/** Finds node types by what a person types: the best first. */

import type { NodeType } from "../model/catalog";

const NO_MATCH = -1;

/** How well a text matches: above 0 if at all. A text that begins with what was typed is better than one that has it. */
function scoreText(text: string, wanted: string): number {
  const at = text.indexOf(wanted);
  if (at === 0) return text.length === wanted.length ? 100 : 80;
  if (at > 0) return /[\s._-]/.test(text[at - 1] ?? "") ? 60 : 40;
  return isScattered(text, wanted) ? 15 : NO_MATCH;
}

/** Whether all characters are there in their order: `htr` finds `HTTP request`. */
function isScattered(text: string, wanted: string): boolean {
  let at = 0;
  for (const letter of wanted) {
    at = text.indexOf(letter, at) + 1;
    if (at === 0) return false;
  }
  return true;
}

function scoreWord(type: NodeType, word: string): number {
  const texts = [
    [type.label, 1],
    [type.type, 0.8],
    [type.category, 0.5],
  ] as const;
  let best = NO_MATCH;
  for (const [text, weight] of texts) best = Math.max(best, scoreText(text.toLowerCase(), word) * weight);
  // A long text has nearly every scattered word in it.
  if (type.description?.toLowerCase().includes(word)) best = Math.max(best, 20);
  return best;
}

/** Those that have every word that was typed; all of them, in their order, if nothing was. */
export function searchTypes(types: readonly NodeType[], query: string): readonly NodeType[] {
  const words = query
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  if (words.length === 0) return types;
  const scored: { type: NodeType; score: number }[] = [];
  for (const type of types) {
    let sum = 0;
    for (const word of words) {
      const score = scoreWord(type, word);
      if (score < 0) {
        sum = NO_MATCH;
        break;
      }
      sum += score;
    }
    if (sum >= 0) scored.push({ type, score: sum });
  }
  return scored
    .sort((one, other) => other.score - one.score || one.type.label.localeCompare(other.type.label))
    .map((one) => one.type);
}

export interface Category {
  readonly name: string;
  readonly types: readonly NodeType[];
}

export function categoriesOf(types: readonly NodeType[]): readonly Category[] {
  const byName = new Map<string, NodeType[]>();
  for (const type of types) {
    const known = byName.get(type.category);
    if (known === undefined) byName.set(type.category, [type]);
    else known.push(type);
  }
  return [...byName]
    .map(([name, some]) => ({ name, types: some.sort((one, other) => one.label.localeCompare(other.label)) }))
    .sort((one, other) => one.name.localeCompare(other.name));
}
