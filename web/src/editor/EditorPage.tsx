import { Button, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useParams, useSearch } from "@tanstack/react-router";
import { useCatalog } from "../api/workflows";
import frame from "../app/frame.module.css";
import { Missing } from "../app/PanelStates";
import { may } from "../app/rights";
import { useSession } from "../app/session";
import { texts } from "../texts";
import { EditorShell } from "./EditorShell";
import { EditorSkeleton } from "./EditorSkeleton";
import { browserCopies } from "./localCopies";
import { MissingWorkflow, type Opening, openWorkflow } from "./opening";
import { readNewest, readVersion } from "./requests";

async function openFor(id: string, version: number | undefined, isNew: boolean): Promise<Opening> {
  if (version !== undefined)
    return { ...(await readVersion(id, version)), isRestored: false, isConflict: false };
  const read = (one: string) => readNewest(one, isNew);
  return openWorkflow(id, isNew ? texts.editor.untitled : null, read, browserCopies);
}

/** One workflow: to edit, or read-only for those who may not and for older versions. */
export function EditorPage() {
  const { workflowId } = useParams({ from: "/workflows/$workflowId" });
  const search = useSearch({ from: "/workflows/$workflowId" });
  const session = useSession();
  const catalog = useCatalog();
  const opening = useQuery({
    queryKey: ["opening", workflowId, search.version ?? "newest"],
    queryFn: () => openFor(workflowId, search.version, search.new === true),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    retry: false,
    refetchOnReconnect: false,
    refetchOnWindowFocus: false,
  });
  const { missing, load } = texts.editor;
  const error = opening.error ?? catalog.error;
  if (error instanceof MissingWorkflow || (error !== null && "status" in error && error.status === 404))
    return (
      <Missing title={missing.title} hint={missing.hint}>
        <Button component={Link} to="/workflows">
          {missing.back}
        </Button>
      </Missing>
    );
  if (error !== null && (opening.data === undefined || catalog.data === undefined)) {
    const retry = (): void => {
      void opening.refetch();
      void catalog.refetch();
    };
    return (
      <div className={frame.empty} role="alert">
        <Title order={1}>{load.failed}</Title>
        <div className={frame.hint}>{error.message}</div>
        <Button onClick={retry}>{load.retry}</Button>
      </div>
    );
  }
  if (opening.data === undefined || catalog.data === undefined || session === null) return <EditorSkeleton />;
  return (
    <EditorShell
      key={`${workflowId} ${search.version ?? "newest"} ${opening.dataUpdatedAt}`}
      workflowId={workflowId}
      opening={opening.data}
      catalog={catalog.data}
      search={search}
      mayEdit={may(session, "edit")}
      mayRun={may(session, "start")}
    />
  );
}
