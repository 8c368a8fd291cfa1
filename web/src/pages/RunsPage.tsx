import { Button, Title } from "@mantine/core";
import { useHotkeys } from "@mantine/hooks";
import { IconChevronLeft, IconChevronRight, IconPlayerPlay, IconUserCheck } from "@tabler/icons-react";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo, useState } from "react";
import { api, dataOf } from "../api/client";
import { useLetterKeys } from "../app/globalKeys";
import { Empty, Panel } from "../app/PanelStates";
import { useSession } from "../app/session";
import { BulkBar } from "../runview/list/BulkBar";
import { Filters } from "../runview/list/Filters";
import classes from "../runview/list/list.module.css";
import { RunTable } from "../runview/list/RunTable";
import { peopleOf, queryOf, type RunsSearch } from "../runview/list/search";
import { type RunSummary, useApprovals } from "../runview/queries";
import { texts } from "../texts";
import { shortId } from "../values/format";

const PAGE = 50;
const NONE: ReadonlySet<string> = new Set();

/** A page of the list, and the way back to those before it. */
function usePages(search: RunsSearch) {
  const [cursors, setCursors] = useState<readonly string[]>([]);
  const key = JSON.stringify(search);
  const [known, setKnown] = useState(key);
  // Other filters begin with the first page.
  if (known !== key) {
    setKnown(key);
    setCursors([]);
  }
  const cursor = cursors.at(-1);
  const query = useQuery({
    queryKey: ["runs", "list", search, cursor ?? ""],
    queryFn: async () =>
      dataOf(
        await api.GET("/api/v1/runs", {
          params: {
            query: {
              limit: PAGE,
              ...queryOf(search, Date.now()),
              ...(cursor === undefined ? {} : { cursor }),
            },
          },
        }),
      ),
    placeholderData: keepPreviousData,
  });
  const next = query.data?.nextCursor ?? null;
  return {
    query,
    number: cursors.length + 1,
    older: next === null ? null : () => setCursors([...cursors, next]),
    newer: cursors.length === 0 ? null : () => setCursors(cursors.slice(0, -1)),
  };
}

/** All runs, the newest first, as they come. */
export function RunsPage() {
  const words = texts.runView.list;
  const search = useSearch({ from: "/runs" });
  const navigate = useNavigate({ from: "/runs" });
  const onChange = useCallback(
    (change: RunsSearch) => void navigate({ search: (before) => ({ ...before, ...change }), replace: true }),
    [navigate],
  );
  const onClear = useCallback(() => void navigate({ search: {}, replace: true }), [navigate]);
  const { query, number, older, newer } = usePages(search);
  const runs = query.data?.items ?? [];
  const me = useSession()?.subject ?? null;
  const people = useMemo(() => peopleOf(query.data?.items ?? [], me), [query.data, me]);
  const [active, setActive] = useState(-1);
  const [selected, setSelected] = useState<ReadonlySet<string>>(NONE);
  const approvals = useApprovals().data;
  const waiting = useMemo(() => new Set((approvals ?? []).map((one) => one.runId)), [approvals]);
  const isFiltered = Object.values(search).some((one) => one !== undefined);
  const move = (way: number): void => setActive((at) => Math.max(0, Math.min(runs.length - 1, at + way)));
  const turnTo = (page: (() => void) | null): void => {
    setActive(-1);
    page?.();
  };
  useLetterKeys([
    ["J", () => move(1)],
    ["K", () => move(-1)],
    ["L", () => turnTo(older)],
    ["H", () => turnTo(newer)],
    ["X", () => runs[active] !== undefined && setSelected(toggled(selected, runs[active].runId))],
  ]);
  useHotkeys([
    [
      "Enter",
      () =>
        runs[active] !== undefined &&
        void navigate({ to: "/runs/$runId", params: { runId: runs[active].runId } }),
      { preventDefault: false },
    ],
  ]);
  const chosen = runs.filter((run) => selected.has(run.runId));
  return (
    <div className={classes.page}>
      <div className={classes.head}>
        <Title order={1}>{words.title}</Title>
        <Filters search={search} people={people} onChange={onChange} onClear={onClear} />
      </div>
      <Waiting ids={[...waiting]} />
      {chosen.length > 0 && <BulkBar runs={chosen} onDone={() => setSelected(NONE)} />}
      <Panel query={query}>
        {() =>
          runs.length === 0 ? (
            <NoRuns isFiltered={isFiltered} onClear={onClear} />
          ) : (
            <RunTable
              runs={runs}
              active={active}
              selected={selected}
              waiting={waiting}
              onSelect={setSelected}
            />
          )
        }
      </Panel>
      {(older !== null || newer !== null) && (
        <nav className={classes.pages} aria-label={words.page(number)}>
          <Button
            variant="default"
            leftSection={<IconChevronLeft size={14} />}
            disabled={newer === null}
            onClick={() => turnTo(newer)}
          >
            {words.newer}
          </Button>
          <span>{words.page(number)}</span>
          <Button
            variant="default"
            rightSection={<IconChevronRight size={14} />}
            disabled={older === null}
            onClick={() => turnTo(older)}
          >
            {words.older}
          </Button>
        </nav>
      )}
      {runs.length > 0 && <small className={classes.keys}>{words.keys}</small>}
    </div>
  );
}

function toggled(ids: ReadonlySet<string>, id: RunSummary["runId"]): ReadonlySet<string> {
  const after = new Set(ids);
  if (!after.delete(id)) after.add(id);
  return after;
}

function NoRuns({ isFiltered, onClear }: { readonly isFiltered: boolean; readonly onClear: () => void }) {
  const words = texts.runView.list;
  if (isFiltered)
    return (
      <Empty icon={IconPlayerPlay} title={words.noMatch} hint={words.noMatchHint}>
        <Button variant="default" onClick={onClear}>
          {words.clear}
        </Button>
      </Empty>
    );
  return (
    <Empty icon={IconPlayerPlay} title={texts.pages.runs.empty} hint={texts.pages.runs.hint}>
      <Link to="/workflows" className={classes.name}>
        {words.goToWorkflows}
      </Link>
    </Empty>
  );
}

const NAMED = 5;

/** Runs that go on only when somebody decides. */
function Waiting({ ids }: { readonly ids: readonly string[] }) {
  if (ids.length === 0) return null;
  return (
    <div className={classes.notice}>
      <IconUserCheck size={16} aria-hidden="true" />
      <span>{texts.runView.list.approvals(ids.length)}</span>
      {ids.slice(0, NAMED).map((id) => (
        <Link key={id} to="/runs/$runId" params={{ runId: id }} className={classes.link}>
          #{shortId(id)}
        </Link>
      ))}
      <Link to="/approvals" className={classes.link}>
        {texts.runView.approvals.decideHere}
      </Link>
    </div>
  );
}
