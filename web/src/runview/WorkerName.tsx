import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../api/client";
import { shortId } from "../values/format";

/** The name of a worker; of one that is not known any more, its id. */
export function WorkerName({ id }: { readonly id: string }) {
  const { data } = useQuery({
    // Not among the lists of workers: a name does not change with each event.
    queryKey: ["worker-name", id],
    queryFn: async () => dataOf(await api.GET("/api/v1/workers/{id}", { params: { path: { id } } })).name,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  return data === undefined ? <code title={id}>{shortId(id)}</code> : <span title={id}>{data}</span>;
}
