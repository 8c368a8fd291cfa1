import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { ApiError } from "../api/client";
import { useCatalog, useRunDocument } from "../api/workflows";
import { Failure, Loading, Missing } from "../app/PanelStates";
import { useRunHeader } from "../runview/queries";
import { RunView } from "../runview/RunView";
import { DefinitionProvider, defineRun, PlaceProvider, useAddressedPlace } from "../runview/runPage";
import classes from "../runview/shared.module.css";
import { RunProvider } from "../stores/run";
import { texts } from "../texts";

/** One run, live. */
export function RunPage() {
  const place = useAddressedPlace();
  const { runId } = place;
  const header = useRunHeader(runId);
  const catalog = useCatalog();
  const document = useRunDocument(runId);
  const definition = useMemo(
    () =>
      document.data === undefined || catalog.data === undefined
        ? null
        : defineRun(document.data, catalog.data),
    [document.data, catalog.data],
  );
  const failed = [header, catalog, document].find(
    (query) => query.data === undefined && query.error !== null,
  );
  if (failed?.error instanceof ApiError && failed.error.status === 404) {
    const { title, hint, back } = texts.runView.missing;
    return (
      <Missing title={title} hint={hint}>
        <Button component={Link} to="/runs">
          {back}
        </Button>
      </Missing>
    );
  }
  if (failed?.error != null)
    return <Failure title={texts.failed.title} error={failed.error} retry={() => void failed.refetch()} />;
  if (definition === null || header.data === undefined)
    return (
      <div className={classes.padded}>
        <Loading />
      </div>
    );
  return (
    <RunProvider runId={runId}>
      <DefinitionProvider value={definition}>
        <PlaceProvider value={place}>
          <RunView key={runId} header={header.data} />
        </PlaceProvider>
      </DefinitionProvider>
    </RunProvider>
  );
}
