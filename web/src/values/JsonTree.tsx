import { TextInput } from "@mantine/core";
import { IconChevronRight, IconSearch } from "@tabler/icons-react";
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

/** A JSON value as a tree: what is open is drawn, what is out of sight is not. */
export function JsonTree({
  value,
  maxHeight = 420,
}: {
  readonly value: unknown;
  readonly maxHeight?: number;
}) {
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
  readonly onToggle: () => void;
  readonly onActive: () => void;
}

function Row({ row, top, isActive, onToggle, onActive }: RowProps) {
  const words = texts.runView.values;
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
            {row.path !== "" && <CopyButton label={words.copyPath} make={() => row.path} />}
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
