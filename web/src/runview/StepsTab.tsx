import { TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import { StateMark } from "../canvas/StateMark";
import { useRun } from "../stores/run";
import { texts } from "../texts";
import { formatDuration } from "../values/format";
import { Space } from "../values/TableView";
import { useNow } from "./clock";
import { Nothing } from "./Panel";
import { useDefinition, useRunSearch, useSelectStep } from "./runPage";
import shared from "./shared.module.css";
import { STEP_COLUMNS, type StepColumn, type StepOrder, type StepRow, sortSteps, stepRows } from "./stepRows";
import classes from "./tables.module.css";
import timelineClasses from "./timeline.module.css";
import { WorkerName } from "./WorkerName";

const ROW = 28;
const words = texts.runView.steps;
const LABELS: Readonly<Record<StepColumn, string>> = {
  state: words.state,
  label: words.name,
  duration: words.duration,
  attempt: words.attempt,
  workerId: words.workerId,
  package: words.package,
};

/** The steps of the run in a table. */
export function StepsTab() {
  const definition = useDefinition();
  const nodes = useRun((run) => run.nodes);
  const now = useNow(useRun((run) => run.finishedAt === null));
  const [order, setOrder] = useState<StepOrder | null>(null);
  const [text, setText] = useState("");
  const steps = useMemo(
    () =>
      [...definition.nodes.values()].map((node) => {
        const known = definition.typeOf(node)?.package;
        const from = known ?? node.package;
        return {
          nodeId: node.id,
          label: definition.labelOf(node.id),
          type: node.type,
          package: from == null ? "" : `${from.name} ${from.version ?? ""}`,
        };
      }),
    [definition],
  );
  const rows = useMemo(() => {
    const wanted = text.toLowerCase();
    const found = stepRows(steps, nodes, now).filter((row) =>
      `${row.label} ${row.type} ${texts.stepState[row.state]} ${row.message}`.toLowerCase().includes(wanted),
    );
    return sortSteps(found, order);
  }, [steps, nodes, now, order, text]);
  const press = (column: StepColumn): void =>
    setOrder((before) => {
      if (before?.column !== column) return { column, isDown: false };
      return before.isDown ? null : { column, isDown: true };
    });
  return (
    <div className={timelineClasses.tablePanel}>
      <div className={shared.tools}>
        <TextInput
          leftSection={<IconSearch size={14} />}
          placeholder={words.filter}
          aria-label={words.filter}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
        />
      </div>
      {rows.length === 0 ? (
        <Nothing title={words.none} />
      ) : (
        <StepTable rows={rows} order={order} onSort={press} />
      )}
    </div>
  );
}

interface TableProps {
  readonly rows: readonly StepRow[];
  readonly order: StepOrder | null;
  readonly onSort: (column: StepColumn) => void;
}

function StepTable({ rows, order, onSort }: TableProps) {
  const { step } = useRunSearch();
  const select = useSelectStep();
  const place = useRef<HTMLDivElement>(null);
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => place.current,
    estimateSize: () => ROW,
    overscan: 10,
    scrollPaddingStart: 28,
  });
  const selected = rows.findIndex((row) => row.nodeId === step);
  const scroll = list.scrollToIndex;
  useEffect(() => {
    if (selected >= 0) scroll(selected, { align: "auto" });
  }, [selected, scroll]);
  const onKey = (event: KeyboardEvent): void => {
    const way =
      event.key === "ArrowDown" || event.key === "j"
        ? 1
        : event.key === "ArrowUp" || event.key === "k"
          ? -1
          : 0;
    const next = rows[Math.max(0, Math.min(rows.length - 1, selected + way))];
    if (way === 0 || next === undefined) return;
    select(next.nodeId);
    event.preventDefault();
  };
  const shown = list.getVirtualItems();
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the keys move the selection of the table inside
    <div ref={place} className={classes.tableBox} onKeyDown={onKey}>
      <table className={classes.table} aria-label={words.label} aria-rowcount={rows.length}>
        <thead>
          <tr>
            {STEP_COLUMNS.map((column) => (
              <th
                key={column}
                data-column={column}
                aria-sort={order?.column !== column ? "none" : order.isDown ? "descending" : "ascending"}
              >
                <button type="button" className={classes.sorter} onClick={() => onSort(column)}>
                  {LABELS[column]}
                  {order?.column === column && (order.isDown ? " ↓" : " ↑")}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {(shown[0]?.start ?? 0) > 0 && <Space height={shown[0]?.start ?? 0} />}
          {shown.map((item) => {
            const row = rows[item.index];
            return row === undefined ? null : (
              <tr
                key={row.nodeId}
                data-selected={row.nodeId === step || undefined}
                onClick={() => select(row.nodeId)}
              >
                <td>
                  <span className={shared.stateCell} data-state={row.state}>
                    <StateMark state={row.state} size={14} /> {texts.stepState[row.state]}
                  </span>
                </td>
                <td>
                  <button type="button" className={classes.rowLink} onClick={() => select(row.nodeId)}>
                    {row.label}
                  </button>
                  {row.message !== "" && <small title={row.message}>{row.message}</small>}
                </td>
                <td className={shared.number}>{row.duration === null ? "" : formatDuration(row.duration)}</td>
                <td className={shared.number}>{row.attempt > 0 ? row.attempt : ""}</td>
                <td>{row.workerId !== "" && <WorkerName id={row.workerId} />}</td>
                <td>{row.package}</td>
              </tr>
            );
          })}
          <Space height={Math.max(0, list.getTotalSize() - (shown.at(-1)?.end ?? 0))} />
        </tbody>
      </table>
    </div>
  );
}
