/** What workers do just now, as the stream tells it while somebody looks. */

import { useEffect, useState } from "react";
import { onTenantEvents, wantLoads } from "../../live/live";

export interface Load {
  readonly workerId: string;
  readonly inflight: number;
  readonly maxParallel: number;
  readonly cpuPct?: number | null;
  readonly memPct?: number | null;
}

export function useLoads(): ReadonlyMap<string, Load> {
  const [loads, setLoads] = useState<ReadonlyMap<string, Load>>(new Map());
  useEffect(() => {
    wantLoads(true);
    const forget = onTenantEvents((events) => {
      const told = events.filter((event) => event.type === "worker.load");
      if (told.length === 0) return;
      setLoads((before) => {
        const next = new Map(before);
        for (const { data } of told)
          for (const load of (data as { workers: readonly Load[] }).workers) next.set(load.workerId, load);
        return next;
      });
    });
    return () => {
      wantLoads(false);
      forget();
    };
  }, []);
  return loads;
}
