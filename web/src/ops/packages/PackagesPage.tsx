import { Alert, Badge, Button, FileButton, Progress, TextInput, Title } from "@mantine/core";
import { IconPackage, IconSearch } from "@tabler/icons-react";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { type DragEvent, useState } from "react";
import { api, dataOf } from "../../api/client";
import { useCatalog } from "../../api/workflows";
import { tellDone, tellError, useAction } from "../../app/actions";
import { Empty, Loading, Panel } from "../../app/PanelStates";
import { useMay } from "../../app/session";
import { texts } from "../../texts";
import classes from "../ops.module.css";
import { useAllPages } from "../pages";
import { aboutOf, builtIn, findPackages, type Summary } from "./listing";
import { BuiltInPanel, PackagePanel } from "./PackagePanel";
import { type Chosen, choose, type PackageVersion, publish } from "./publish";

const words = texts.operations.packages;

/** The packages, and one of them beside. An archive that is dropped on the page is published. */
export function PackagesPage() {
  const { package: chosen } = useSearch({ from: "/packages" });
  const navigate = useNavigate({ from: "/packages" });
  const [text, setText] = useState("");
  const mayPublish = useMay("operate");
  const upload = useUpload((version) => void navigate({ search: { package: version.name } }));
  const drop = useDrop(mayPublish, upload.take);
  const query = useAllPages<Summary>(["packages", "list"], async (cursor) =>
    dataOf(
      await api.GET("/api/v1/packages", { params: { query: { limit: 200, ...(cursor ? { cursor } : {}) } } }),
    ),
  );
  const catalog = useCatalog();
  return (
    <div className={`${classes.page} ${drop.isOver ? classes.drop : ""}`} {...drop.handlers}>
      <div className={classes.head}>
        <Title order={1}>{texts.pages.packages.title}</Title>
        {query.data !== undefined && <span className={classes.dim}>{words.count(query.data.length)}</span>}
        {mayPublish && (
          <FileButton onChange={upload.take} multiple accept=".cwx,.sig,.json">
            {(props) => (
              <Button {...props} loading={upload.part !== null}>
                {words.publish}
              </Button>
            )}
          </FileButton>
        )}
      </div>
      {upload.part !== null && <Progress value={upload.part * 100} aria-label={words.uploading} />}
      {mayPublish && <div className={classes.dim}>{words.dropHint}</div>}
      <Panel query={query}>
        {(rows) => {
          if (rows.length === 0)
            return (
              <Empty icon={IconPackage} title={texts.pages.packages.empty} hint={texts.pages.packages.hint} />
            );
          const own = query.hasNextPage ? [] : builtIn(catalog.data, rows);
          const found = findPackages([...own, ...rows], text);
          const name = chosen ?? rows[0]?.name ?? "";
          // It may be part of the installation, of which the catalog tells.
          const isListed = rows.some((row) => row.name === name);
          const isUnknown = !isListed && (query.hasNextPage || catalog.isPending);
          return (
            <div className={classes.split}>
              <div>
                <TextInput
                  leftSection={<IconSearch size={14} />}
                  placeholder={words.find}
                  aria-label={words.find}
                  value={text}
                  onChange={(event) => setText(event.currentTarget.value)}
                  mb={8}
                />
                <List key={text} rows={found} chosen={name} />
              </div>
              {own.some((row) => row.name === name) ? (
                <BuiltInPanel key={name} name={name} />
              ) : isUnknown ? (
                <Loading />
              ) : (
                <PackagePanel key={name} name={name} />
              )}
            </div>
          );
        }}
      </Panel>
    </div>
  );
}

/** So many rows are drawn at once. Whoever looks for more finds them by name. */
const AT_ONCE = 100;

function List({ rows, chosen }: { readonly rows: readonly Summary[]; readonly chosen: string }) {
  const [shown, setShown] = useState(AT_ONCE);
  if (rows.length === 0) return <Alert color="gray">{words.noMatch}</Alert>;
  const left = rows.length - shown;
  return (
    <>
      <ul className={classes.list}>
        {rows.slice(0, shown).map((row) => (
          <li key={row.name}>
            <Link
              to="/packages"
              search={{ package: row.name }}
              className={classes.item ?? ""}
              data-selected={row.name === chosen || undefined}
              aria-current={row.name === chosen ? "true" : undefined}
            >
              <strong>{row.name}</strong>
              <span className={classes.mono}>{row.active ?? <Badge size="xs">{words.noActive}</Badge>}</span>
              <small>{aboutOf(row)}</small>
            </Link>
          </li>
        ))}
      </ul>
      {left > 0 && (
        <Button variant="default" mt="sm" fullWidth onClick={() => setShown(shown + AT_ONCE)}>
          {words.showMore(left)}
        </Button>
      )}
    </>
  );
}

function useUpload(onDone: (version: PackageVersion) => void) {
  const [part, setPart] = useState<number | null>(null);
  const action = useAction<Chosen, PackageVersion>({
    run: (chosen) => {
      setPart(0);
      return publish(chosen, setPart).finally(() => setPart(null));
    },
    changes: ["packages"],
    failed: words.publishFailed,
    done: (version) => {
      tellDone(words.published(version.name, version.version));
      onDone(version);
    },
  });
  const take = (files: readonly File[]): void => {
    const chosen = choose(files);
    if (chosen === null) tellError(words.publishFailed, new Error(words.noArchive));
    else action.mutate(chosen);
  };
  return { part, take };
}

/** Files that are dragged over the page. */
function useDrop(isOn: boolean, take: (files: readonly File[]) => void) {
  const [isOver, setIsOver] = useState(false);
  if (!isOn) return { isOver: false, handlers: {} };
  const handlers = {
    onDragOver: (event: DragEvent): void => {
      if (!event.dataTransfer.types.includes("Files")) return;
      event.preventDefault();
      setIsOver(true);
    },
    onDragLeave: (): void => setIsOver(false),
    onDrop: (event: DragEvent): void => {
      event.preventDefault();
      setIsOver(false);
      take([...event.dataTransfer.files]);
    },
  };
  return { isOver, handlers };
}
