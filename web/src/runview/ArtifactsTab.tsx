import type { components } from "../api/schema";
import { Panel } from "../app/PanelStates";
import { texts } from "../texts";
import { formatDate } from "../values/format";
import { ReferenceView } from "../values/ReferenceView";
import { artifactReference } from "../values/references";
import { Nothing } from "./Panel";
import { useArtifacts } from "./queries";
import classes from "./shared.module.css";
import tablesClasses from "./tables.module.css";

type Artifact = components["schemas"]["Artifact"];

/** Artifacts as cards: what each is, who keeps it and until when. */
export function ArtifactList({ artifacts }: { readonly artifacts: readonly Artifact[] }) {
  const words = texts.runView.artifacts;
  return (
    <ul className={tablesClasses.artifacts}>
      {artifacts.map((artifact) => (
        <li key={`${artifact.workerId}/${artifact.resourceId}`}>
          <ReferenceView
            reference={artifactReference(artifact)}
            extra={
              artifact.expiresAt === null ? null : (
                <small>{words.expires(formatDate(artifact.expiresAt))}</small>
              )
            }
          />
        </li>
      ))}
    </ul>
  );
}

/** Everything that the results of the run refer to. */
export function ArtifactsTab({
  runId,
  scope,
}: {
  readonly runId: string;
  readonly scope?: string | undefined;
}) {
  const words = texts.runView.artifacts;
  const query = useArtifacts(runId, scope);
  return (
    <div className={classes.padded}>
      <Panel query={query}>
        {(artifacts) =>
          artifacts.length === 0 ? (
            <Nothing title={words.none} hint={words.hint} />
          ) : (
            <ArtifactList artifacts={artifacts} />
          )
        }
      </Panel>
    </div>
  );
}
