import { useVirtualizer } from "@tanstack/react-virtual";
import { useMemo, useRef, useState } from "react";
import { texts } from "../texts";
import { LeafValue } from "./LeafValue";
import classes from "./values.module.css";

const ROW = 26;
type Row = Readonly<Record<string, unknown>>;

function compare(one: unknown, other: unknown): number {
  if (typeof one === "number" && typeof other === "number") return one - other;
  return String(one ?? "").localeCompare(String(other ?? ""), undefined, { numeric: true });
}

/** A list of objects as a table. A click on a column sorts by it, a second one the other way, a third not at all. */
export function TableView({
  rows,
  columns,
  maxHeight = 420,
}: {
  readonly rows: readonly Row[];
  readonly columns: readonly string[];
  readonly maxHeight?: number;
}) {
  const [sort, setSort] = useState<{ readonly column: string; readonly isDown: boolean } | null>(null);
  const sorted = useMemo(() => {
    if (sort === null) return rows;
    const way = sort.isDown ? -1 : 1;
    return rows.toSorted((one, other) => way * compare(one[sort.column], other[sort.column]));
  }, [rows, sort]);
  const place = useRef<HTMLElement>(null);
  const list = useVirtualizer({
    count: sorted.length,
    getScrollElement: () => place.current,
    estimateSize: () => ROW,
    overscan: 10,
  });
  const press = (column: string): void =>
    setSort((now) => {
      if (now?.column !== column) return { column, isDown: false };
      return now.isDown ? null : { column, isDown: true };
    });
  const shown = list.getVirtualItems();
  const before = shown[0]?.start ?? 0;
  const after = list.getTotalSize() - (shown.at(-1)?.end ?? 0);
  return (
    <section
      ref={place}
      className={classes.grid}
      style={{ maxHeight }}
      aria-label={texts.runView.values.table}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard scrolls what has the focus
      tabIndex={0}
    >
      <table aria-rowcount={rows.length} style={{ minWidth: 48 + columns.length * 96 }}>
        <thead>
          <tr>
            <th className={classes.place}>#</th>
            {columns.map((column) => (
              <th
                key={column}
                aria-sort={sort?.column !== column ? "none" : sort.isDown ? "descending" : "ascending"}
              >
                <button type="button" className={classes.sorter} onClick={() => press(column)} title={column}>
                  {column}
                  {sort?.column === column && (sort.isDown ? " ↓" : " ↑")}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {before > 0 && <Space height={before} />}
          {shown.map((item) => (
            <tr key={item.key}>
              <td className={classes.place}>{item.index}</td>
              {columns.map((column) => (
                <td key={column}>
                  {sorted[item.index]?.[column] !== undefined && (
                    <LeafValue value={sorted[item.index]?.[column]} />
                  )}
                </td>
              ))}
            </tr>
          ))}
          {after > 0 && <Space height={after} />}
        </tbody>
      </table>
    </section>
  );
}

/** Rows that are out of sight. */
export function Space({ height }: { readonly height: number }) {
  return (
    <tr>
      <td style={{ height, padding: 0, border: 0 }} />
    </tr>
  );
}
