import { readFileSync } from "node:fs";
import { NodeCatalog, type NodeType } from "../src/model/catalog";

const read = (path: string): string => readFileSync(new URL(path, import.meta.url), "utf8");

/** The workflow of the seed, as it is written there. */
export const SEED = read("../../schemas/examples/valid/workflow/playwright_smoke_check.json");
export const EVERYTHING = read("../../schemas/examples/valid/workflow/everything.json");
export const BODIES = read("../../schemas/examples/valid/workflow/bodies.json");

export interface CorpusCase {
  readonly name: string;
  readonly text: string;
  readonly problems: readonly (readonly [pointer: string, code: string])[];
}

export const CORPUS = JSON.parse(read("fixtures/corpus.json")) as readonly CorpusCase[];

export interface ListedType extends NodeType {
  readonly portTypes: {
    readonly inputs: Record<string, string[]>;
    readonly outputs: Record<string, string[]>;
  };
}

export const TYPES = JSON.parse(read("fixtures/catalog.json")) as readonly ListedType[];
export const CATALOG = new NodeCatalog(TYPES);
