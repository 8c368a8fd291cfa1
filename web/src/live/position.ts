/** The position of a mixed stream: the last event that was seen of the tenant and of each run, as `17,RUN:45`. */

export interface StreamPosition {
  readonly tenant: string;
  readonly runs: ReadonlyMap<string, string>;
}

export function readPosition(text: string): StreamPosition {
  const [tenant = "", ...pairs] = text.split(",");
  return { tenant, runs: new Map(pairs.map((pair) => pair.split(":") as [string, string])) };
}

/** The position for a stream with these runs. A run that it does not name begins with a snapshot. */
export function positionFor(position: StreamPosition | null, runs: Iterable<string>): string {
  if (position === null || position.tenant === "") return "";
  const kept = [...runs].flatMap((run) => {
    const at = position.runs.get(run);
    return at === undefined ? [] : [`${run}:${at}`];
  });
  return [position.tenant, ...kept].join(",");
}
