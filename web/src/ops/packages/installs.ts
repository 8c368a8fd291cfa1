/** Installations that are under way, as workers report them. */

import { useEffect, useState } from "react";
import { onTenantEvents } from "../../live/live";

export interface Install {
  readonly workerId: string;
  readonly name: string;
  readonly version: string;
  readonly status: string;
  readonly details?: unknown;
  readonly progress?: number | null;
}

const REPORTS = new Set(["downloading", "installing", "installed", "failed", "removed"]);

/** The last report of each worker about a version of this package, by worker and version. */
export function useInstalls(name: string): ReadonlyMap<string, Install> {
  const [installs, setInstalls] = useState<ReadonlyMap<string, Install>>(new Map());
  useEffect(
    () =>
      onTenantEvents((events) => {
        const told = events
          .filter((event) => event.type.startsWith("package.") && REPORTS.has(event.type.slice(8)))
          .map((event) => event.data as Install)
          .filter((install) => install.name === name);
        if (told.length === 0) return;
        setInstalls((before) => {
          const next = new Map(before);
          for (const install of told) next.set(`${install.workerId} ${install.version}`, install);
          return next;
        });
      }),
    [name],
  );
  return installs;
}
