import { ActionIcon, Menu, Table, UnstyledButton } from "@mantine/core";
import { IconArrowDown, IconArrowUp, IconDots } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { Time } from "../app/ListPage";
import { texts } from "../texts";
import classes from "./list.module.css";
import type { Sorting, SortKey, WorkflowRow } from "./workflowRows";

const words = texts.editor.list;

const COLUMNS: readonly { readonly key: SortKey; readonly label: string }[] = [
  { key: "name", label: texts.columns.name },
  { key: "version", label: texts.columns.version },
  { key: "draft", label: words.draft },
  { key: "changed", label: texts.columns.changed },
  { key: "by", label: texts.columns.by },
];

interface Props {
  readonly rows: readonly WorkflowRow[];
  readonly sorting: Sorting;
  readonly onSort: (key: SortKey) => void;
  readonly mayEdit: boolean;
  readonly onAction: (action: "duplicate" | "export" | "delete", row: WorkflowRow) => void;
}

/** J and K walk through the rows. */
function useRowKeys() {
  const table = useRef<HTMLTableSectionElement>(null);
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      const isTyping =
        event.target instanceof Element && event.target.closest("input, textarea, [role='dialog']");
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey || !["j", "k"].includes(event.key))
        return;
      const links = [...(table.current?.querySelectorAll<HTMLAnchorElement>("a[data-row]") ?? [])];
      const at = links.indexOf(document.activeElement as HTMLAnchorElement);
      links[Math.max(0, Math.min(links.length - 1, at + (event.key === "j" ? 1 : -1)))]?.focus();
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, []);
  return table;
}

export function WorkflowTable({ rows, sorting, onSort, mayEdit, onAction }: Props) {
  const body = useRowKeys();
  return (
    <Table className={classes.table} verticalSpacing={2} highlightOnHover>
      <Table.Thead>
        <Table.Tr>
          {COLUMNS.map((column) => (
            <Head key={column.key} name={column.key} label={column.label} sorting={sorting} onSort={onSort} />
          ))}
          <Table.Th aria-label={texts.editor.toolbar.menu} />
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody ref={body}>
        {rows.map((row) => (
          <Table.Tr key={row.id}>
            <Table.Td>
              <Link
                to="/workflows/$workflowId"
                params={{ workflowId: row.id }}
                search={{}}
                className={classes.nameLink}
                data-row
              >
                {row.name || texts.editor.untitled}
              </Link>
            </Table.Td>
            <Table.Td>{row.version > 0 ? texts.editor.toolbar.version(row.version) : words.none}</Table.Td>
            <Table.Td>
              {row.hasDraft && (
                <span className={classes.badge}>{row.version > 0 ? words.draft : words.draftOnly}</span>
              )}
            </Table.Td>
            <Table.Td>
              <Time at={row.changedAt} />
            </Table.Td>
            <Table.Td>{row.changedBy}</Table.Td>
            <Table.Td className={classes.actions}>
              <RowMenu row={row} mayEdit={mayEdit} onAction={onAction} />
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

interface HeadProps {
  readonly name: SortKey;
  readonly label: string;
  readonly sorting: Sorting;
  readonly onSort: (key: SortKey) => void;
}

function Head({ name, label, sorting, onSort }: HeadProps) {
  const isSorted = sorting.key === name;
  const Icon = sorting.isDescending ? IconArrowDown : IconArrowUp;
  return (
    <Table.Th aria-sort={isSorted ? (sorting.isDescending ? "descending" : "ascending") : "none"}>
      <UnstyledButton className={classes.head} onClick={() => onSort(name)}>
        {label}
        {isSorted && <Icon size={12} aria-hidden="true" />}
      </UnstyledButton>
    </Table.Th>
  );
}

function RowMenu({
  row,
  mayEdit,
  onAction,
}: { readonly row: WorkflowRow } & Pick<Props, "mayEdit" | "onAction">) {
  return (
    <Menu position="bottom-end" shadow="md">
      <Menu.Target>
        <ActionIcon
          variant="subtle"
          color="gray"
          aria-label={words.actions(row.name || texts.editor.untitled)}
        >
          <IconDots size={16} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={() => onAction("export", row)}>{words.exportFile}</Menu.Item>
        {mayEdit && <Menu.Item onClick={() => onAction("duplicate", row)}>{words.duplicate}</Menu.Item>}
        {mayEdit && (
          <Menu.Item c="var(--state-failed)" onClick={() => onAction("delete", row)}>
            {words.delete}
          </Menu.Item>
        )}
      </Menu.Dropdown>
    </Menu>
  );
}
