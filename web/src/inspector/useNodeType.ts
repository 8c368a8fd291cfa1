import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../api/client";
import type { NodeType } from "../model/catalog";
import type { NodeDefinition } from "../model/definition";
import { useInspector } from "./context";

export interface FoundType {
  readonly type: NodeType | undefined;
  /** Why there is none. */
  readonly miss?: "type" | "package" | "version" | "ambiguous" | undefined;
}

/** The type of a node. The catalog has one version of each package; another one is asked for. */
export function useNodeType(node: NodeDefinition): FoundType {
  const { catalog } = useInspector();
  const found = catalog.find(node.type, node.package?.name, node.package?.version);
  const isOther = found === "version";
  const { data } = useQuery({
    queryKey: ["packages", "type", node.type, node.package?.name, node.package?.version],
    queryFn: async () =>
      dataOf(
        await api.GET("/api/v1/catalog/nodes/{type}", {
          params: {
            path: { type: node.type },
            query: { package: node.package?.name ?? "", version: node.package?.version ?? "" },
          },
        }),
      ) as unknown as NodeType,
    enabled: isOther,
    retry: false,
  });
  if (typeof found === "object") return { type: found };
  return data === undefined ? { type: undefined, miss: found } : { type: data };
}
