import { ActionIcon, TextInput, Tooltip } from "@mantine/core";
import { IconChevronRight, IconCornerDownLeft, IconSearch } from "@tabler/icons-react";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useMemo, useRef, useState } from "react";
import { texts } from "../texts";
import { CopyButton } from "./CopyButton";
import { LeafValue } from "./LeafValue";
import { type TreeRow, treeRows } from "./treeRows";
import classes from "./values.module.css";

const ROW = 22;
/** From so many rows on there is a field to search them. */
const SEARCHED_FROM = 12;

/** The paths of the tree are expressions: its rows can be dragged, copied and inserted as such. */
export interface TreeExpressions {
  /** The type of what a drag carries. */
  readonly dataType: string;
  /** What inserting is called; null if there is nothing to insert into. */
  readonly insertLabel: string | null;
  readonly onInsert: (path: string) => void;
}

interface TreeProps {
  readonly value: unknown;
  readonly maxHeight?: number;
  readonly expressions?: TreeExpressions;
}

/** A JSON value as a tree: what is open is drawn, what is out of sight is not. */
export function JsonTree({ value, maxHeight = 420, expressions }: TreeProps) {
  const [open, setOpen] = useState<ReadonlySet<string>>(() => firstOpen(value));
  const [pages, setPages] = useState<ReadonlyMap<string, number>>(new Map());
  const [search, setSearch] = useState("");
  const [active, setActive] = useState<string | null>(null);
  const rows = useMemo(() => treeRows(value, { open, pages, search }), [value, open, pages, search]);
  const place = useRef<HTMLDivElement>(null);
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => place.current,
    estimateSize: () => ROW,
    overscan: 12,
  });
  const toggle = (row: TreeRow): void => {
    if (row.kind === "more") {
      setPages((before) => new Map(before).set(row.pointer, (before.get(row.pointer) ?? 1) + 1));
      return;
    }
    setOpen((before) => {
      const after = new Set(before);
      if (!after.delete(row.pointer)) after.add(row.pointer);
      return after;
    });
  };
  const onKey = (event: KeyboardEvent): void => {
    const at = Math.max(
      0,
      rows.findIndex((row) => keyOfRow(row) === active),
    );
    const row = rows[at];
    const go = (to: number): void => {
      const next = rows[Math.max(0, Math.min(rows.length - 1, to))];
      if (next === undefined) return;
      setActive(keyOfRow(next));
      list.scrollToIndex(rows.indexOf(next));
    };
    if (event.key === "ArrowDown") go(at + 1);
    else if (event.key === "ArrowUp") go(at - 1);
    else if (row !== undefined && event.key === "ArrowRight" && row.count > 0 && !row.isOpen) toggle(row);
    else if (row !== undefined && event.key === "ArrowLeft" && row.isOpen) toggle(row);
    else if (event.key === "Enter" && row?.kind === "leaf" && expressions?.insertLabel != null)
      expressions.onInsert(row.path);
    else if (row !== undefined && (event.key === "Enter" || event.key === " ") && row.count > 0) toggle(row);
    else return;
    event.preventDefault();
  };
  return (
    <div className={classes.treeBox}>
      {(rows.length >= SEARCHED_FROM || search !== "") && (
        <TextInput
          className={classes.search}
          leftSection={<IconSearch size={14} />}
          placeholder={texts.runView.values.find}
          aria-label={texts.runView.values.find}
          value={search}
          onChange={(event) => setSearch(event.currentTarget.value)}
        />
      )}
      {rows.length === 0 && <div className={classes.nothing}>{texts.runView.values.noMatch}</div>}
      <div
        ref={place}
        className={classes.tree}
        style={{ maxHeight, height: Math.max(ROW, rows.length * ROW) + 2 }}
        role="tree"
        aria-label={texts.runView.values.tree}
        tabIndex={0}
        onKeyDown={onKey}
      >
        <div style={{ height: list.getTotalSize() }} role="presentation">
          {list.getVirtualItems().map((item) => {
            const row = rows[item.index];
            return row === undefined ? null : (
              <Row
                key={keyOfRow(row)}
                row={row}
                top={item.start}
                isActive={keyOfRow(row) === active}
                expressions={expressions}
                onToggle={() => toggle(row)}
                onActive={() => setActive(keyOfRow(row))}
              />
            );
          })}
        </div>
      </div>
    </div>
  );
}

const keyOfRow = (row: TreeRow): string => (row.kind === "more" ? `${row.pointer}…` : row.pointer);

/** The first level is open, and a member that is alone. */
function firstOpen(value: unknown): ReadonlySet<string> {
  const open = new Set([""]);
  const members = typeof value === "object" && value !== null ? Object.entries(value) : [];
  if (members.length === 1) open.add(`/${members[0]?.[0].replaceAll("~", "~0").replaceAll("/", "~1")}`);
  return open;
}

interface RowProps {
  readonly row: TreeRow;
  readonly top: number;
  readonly isActive: boolean;
  readonly expressions: TreeExpressions | undefined;
  readonly onToggle: () => void;
  readonly onActive: () => void;
}

function Row({ row, top, isActive, expressions, onToggle, onActive }: RowProps) {
  const words = texts.runView.values;
  const source = row.path === "" || row.kind === "more" ? undefined : expressions;
  const canOpen = row.count > 0;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the tree takes the keys
    // biome-ignore lint/a11y/useFocusableInteractive: the tree has the focus
    <div
      className={classes.row}
      style={{ transform: `translateY(${top}px)`, paddingLeft: row.depth * 14 + 4 }}
      role="treeitem"
      aria-level={row.depth + 1}
      aria-selected={isActive}
      {...(canOpen && row.kind !== "more" ? { "aria-expanded": row.isOpen } : {})}
      data-active={isActive || undefined}
      draggable={source !== undefined}
      onDragStart={(event) => {
        if (source === undefined) return;
        event.dataTransfer.setData(source.dataType, row.path);
        event.dataTransfer.setData("text/plain", row.path);
        event.dataTransfer.effectAllowed = "copy";
      }}
      onClick={() => {
        onActive();
        if (canOpen) onToggle();
      }}
    >
      <IconChevronRight
        size={12}
        className={classes.chevron}
        data-open={row.isOpen || undefined}
        data-hidden={!canOpen || undefined}
        aria-hidden="true"
      />
      {row.kind === "more" ? (
        <span className={classes.more}>{words.more(row.count)}</span>
      ) : (
        <>
          {row.name !== null && <span className={classes.name}>{row.name}</span>}
          {row.kind === "leaf" ? (
            <LeafValue value={row.value} />
          ) : (
            <span className={classes.count}>
              {row.kind === "array" ? words.list(row.count) : words.object(row.count)}
            </span>
          )}
          <span className={classes.rowTools}>
            {source !== undefined && <Insert source={source} path={row.path} />}
            {source !== undefined && <CopyButton label={words.copyExpression} make={() => `=${row.path}`} />}
            {row.path !== "" && source === undefined && (
              <CopyButton label={words.copyPath} make={() => row.path} />
            )}
            <CopyButton
              label={words.copyValue}
              make={() => (typeof row.value === "string" ? row.value : JSON.stringify(row.value, null, 2))}
            />
          </span>
        </>
      )}
    </div>
  );
}

function Insert({ source, path }: { readonly source: TreeExpressions; readonly path: string }) {
  const { insertLabel, onInsert } = source;
  if (insertLabel === null) return null;
  return (
    <Tooltip label={insertLabel}>
      <ActionIcon
        size={22}
        variant="subtle"
        color="gray"
        aria-label={insertLabel}
        onClick={(event) => {
          event.stopPropagation();
          onInsert(path);
        }}
      >
        <IconCornerDownLeft size={14} stroke={1.75} />
      </ActionIcon>
    </Tooltip>
  );
}
