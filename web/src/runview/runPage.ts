/** What all parts of the page of a run need: its definition, and what is selected. */

import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { createContext, useCallback, useContext, useMemo } from "react";
import type { NodeCatalog, NodeType } from "../model/catalog";
import type { NodeDefinition } from "../model/definition";
import { nodesOf, type WorkflowDocument } from "../model/document";
import type { RunSearch } from "./search";

export interface RunDefinition {
  readonly document: WorkflowDocument;
  readonly catalog: NodeCatalog;
  readonly nodes: ReadonlyMap<string, NodeDefinition>;
  readonly typeOf: (node: NodeDefinition) => NodeType | undefined;
  /** The name of a step: its label, that of its type, or its type. */
  readonly labelOf: (nodeId: string) => string;
}

export function defineRun(document: WorkflowDocument, catalog: NodeCatalog): RunDefinition {
  const nodes = new Map(nodesOf(document).map((node) => [node.id, node]));
  const typeOf = (node: NodeDefinition): NodeType | undefined => {
    const found = catalog.find(node.type, node.package?.name, node.package?.version);
    return typeof found === "object" ? found : undefined;
  };
  const labelOf = (nodeId: string): string => {
    const node = nodes.get(nodeId);
    if (node === undefined) return nodeId.slice(0, 8);
    return node.label || typeOf(node)?.label || node.type;
  };
  return { document, catalog, nodes, typeOf, labelOf };
}

const DefinitionContext = createContext<RunDefinition | null>(null);
export const DefinitionProvider = DefinitionContext.Provider;

export function useDefinition(): RunDefinition {
  const found = useContext(DefinitionContext);
  if (found === null) throw new Error("there is no definition around");
  return found;
}

/** Which run is looked at, and what of it: the page of a run has it from its address, the editor from what is selected. */
export interface RunPlace {
  readonly runId: string;
  readonly search: RunSearch;
  /** `undefined` takes a part away. */
  readonly set: (change: RunSearch) => void;
}

const PlaceContext = createContext<RunPlace | null>(null);
export const PlaceProvider = PlaceContext.Provider;

function usePlace(): RunPlace {
  const found = useContext(PlaceContext);
  if (found === null) throw new Error("there is no run around");
  return found;
}

/** The place that the address of the page of a run names. */
export function useAddressedPlace(): RunPlace {
  const { runId } = useParams({ from: "/runs/$runId" });
  const search = useSearch({ from: "/runs/$runId" });
  const navigate = useNavigate({ from: "/runs/$runId" });
  const set = useCallback(
    (change: RunSearch) => void navigate({ search: (before) => ({ ...before, ...change }), replace: true }),
    [navigate],
  );
  return useMemo(() => ({ runId, search, set }), [runId, search, set]);
}

export const useRunId = (): string => usePlace().runId;
export const useRunSearch = (): RunSearch => usePlace().search;
export const useSetSearch = (): ((change: RunSearch) => void) => usePlace().set;

/** Select a step: on the canvas, in the timeline, in the panel and for the logs at once. */
export function useSelectStep(): (step: string | null, scope?: string | null) => void {
  const set = useSetSearch();
  return useMemo(
    () => (step, scope) =>
      set({ step: step ?? undefined, scope: scope ?? undefined, attempt: undefined, logsOf: undefined }),
    [set],
  );
}
