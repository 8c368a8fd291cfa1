import { Alert, Button, TextInput, Title } from "@mantine/core";
import { IconFileImport, IconPlus, IconSearch, IconTemplate } from "@tabler/icons-react";
import { useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import frame from "../app/frame.module.css";
import { Loading } from "../app/PanelStates";
import { useMay } from "../app/session";
import { newId } from "../editor/adding";
import { ConfirmDelete } from "../editor/ConfirmDelete";
import { copyOf } from "../editor/copies";
import { Examples } from "../editor/Examples";
import { ExamplesDialog } from "../editor/ExamplesDialog";
import { chooseFile, downloadText, readWorkflow } from "../editor/files";
import classes from "../editor/list.module.css";
import { withNewIds } from "../editor/parts";
import { createDraft, readNewest } from "../editor/requests";
import { messageOf } from "../editor/running";
import { useWorkflowRows } from "../editor/useWorkflowRows";
import { WorkflowTable } from "../editor/WorkflowTable";
import {
  filteredRows,
  type Sorting,
  type SortKey,
  sortedRows,
  type WorkflowRow,
} from "../editor/workflowRows";
import { texts } from "../texts";

const words = texts.editor.list;

/** All workflows: find one, begin one, copy one. */
export function WorkflowsPage() {
  const { data, error, refetch } = useWorkflowRows();
  const mayEdit = useMay("edit");
  const [query, setQuery] = useState("");
  const [sorting, setSorting] = useState<Sorting>({ key: "changed", isDescending: true });
  const [problem, setProblem] = useState<string | null>(null);
  const [removing, setRemoving] = useState<WorkflowRow | null>(null);
  const actions = useListActions(setProblem, setRemoving);
  const rows = sortedRows(filteredRows(data ?? [], query), sorting);
  const sort = (key: SortKey): void =>
    setSorting((before) => ({
      key,
      isDescending: before.key === key ? !before.isDescending : key === "changed" || key === "version",
    }));
  const hasRows = data !== undefined && data.length > 0;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: a file can be dropped here; the button does the same
    <div
      className={frame.page}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        const file = event.dataTransfer.files[0];
        if (file !== undefined && mayEdit) void actions.importFrom(file);
      }}
    >
      <div className={classes.header}>
        <Title order={1}>{words.title}</Title>
        {hasRows && (
          <TextInput
            aria-label={words.search}
            placeholder={words.search}
            leftSection={<IconSearch size={14} />}
            value={query}
            onChange={(event) => setQuery(event.currentTarget.value)}
            className={classes.search}
          />
        )}
        <span className={classes.grow} />
        {mayEdit && <HeaderActions hasRows={hasRows} onImport={actions.choose} />}
      </div>
      {problem !== null && (
        <Alert color="red" role="alert" withCloseButton onClose={() => setProblem(null)} mt="xs">
          {problem}
        </Alert>
      )}
      {data === undefined && error === null && <Loading />}
      {data === undefined && error !== null && (
        <div className={frame.empty} role="alert">
          <Title order={2}>{texts.failed.panel}</Title>
          <div className={frame.hint}>{error.message}</div>
          <Button onClick={() => void refetch()}>{texts.failed.retry}</Button>
        </div>
      )}
      {data?.length === 0 && (
        <div className={classes.start}>
          <Title order={2}>{words.emptyTitle}</Title>
          <div className={frame.hint}>{words.emptyHint}</div>
          {mayEdit && <Examples onOpened={() => undefined} />}
        </div>
      )}
      {hasRows && rows.length === 0 && (
        <div className={frame.empty}>
          <Title order={2}>{words.noHit}</Title>
          <Button variant="default" onClick={() => setQuery("")}>
            {words.clear}
          </Button>
        </div>
      )}
      {rows.length > 0 && (
        <WorkflowTable
          rows={rows}
          sorting={sorting}
          onSort={sort}
          mayEdit={mayEdit}
          onAction={actions.onAction}
        />
      )}
      {removing !== null && (
        <ConfirmDelete
          id={removing.id}
          name={removing.name || texts.editor.untitled}
          onClose={() => setRemoving(null)}
          onDone={async () => {
            setRemoving(null);
            await refetch();
          }}
        />
      )}
    </div>
  );
}

function HeaderActions({ hasRows, onImport }: { readonly hasRows: boolean; readonly onImport: () => void }) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      {hasRows && (
        <Button variant="default" leftSection={<IconTemplate size={14} />} onClick={() => setIsOpen(true)}>
          {words.examples}
        </Button>
      )}
      <Button variant="default" leftSection={<IconFileImport size={14} />} onClick={onImport}>
        {words.import}
      </Button>
      <Button component={Link} to="/workflows/new" leftSection={<IconPlus size={14} />}>
        {words.create}
      </Button>
      {isOpen && <ExamplesDialog onClose={() => setIsOpen(false)} />}
    </>
  );
}

function useListActions(
  setProblem: (problem: string | null) => void,
  setRemoving: (row: WorkflowRow | null) => void,
) {
  const navigate = useNavigate();
  const queries = useQueryClient();
  const guarded = async (act: () => Promise<void>): Promise<void> => {
    try {
      setProblem(null);
      await act();
    } catch (failure) {
      setProblem(messageOf(failure));
    }
  };
  const importFrom = (file: File): Promise<void> =>
    guarded(async () => {
      const text = await file.text();
      const read = readWorkflow(text);
      if (typeof read === "string") throw new Error(read);
      const workflowId = await createDraft(withNewIds(text, newId));
      await navigate({ to: "/workflows/$workflowId", params: { workflowId }, search: {} });
    });
  const choose = (): void => void chooseFile().then((file) => (file === null ? undefined : importFrom(file)));
  const onAction = (action: "duplicate" | "export" | "delete", row: WorkflowRow): void => {
    if (action === "delete") setRemoving(row);
    else
      void guarded(async () => {
        const text = (await readNewest(row.id))?.text ?? "{}";
        if (action === "export") downloadText(row.name, text);
        else await createDraft(copyOf(text, newId));
        await queries.invalidateQueries({ queryKey: ["workflows"] });
      });
  };
  return { importFrom, choose, onAction };
}
