import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client";

const NONE: ReadonlyMap<string, string> = new Map();

/** The names of workflows by id, of those that were changed last. */
export function useWorkflowNames(): ReadonlyMap<string, string> {
  const { data } = useQuery({
    queryKey: ["workflows", "names"],
    queryFn: async () => {
      const { items } = dataOf(await api.GET("/api/v1/workflows", { params: { query: { limit: 200 } } }));
      return new Map(items.map((one) => [one.id, one.name]));
    },
  });
  return data ?? NONE;
}
