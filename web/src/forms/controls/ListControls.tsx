import { ActionIcon, Button } from "@mantine/core";
import { IconArrowDown, IconArrowUp, IconPlus, IconTrash } from "@tabler/icons-react";
import type { Json, JsonFields } from "../../model/json/tree";
import { texts } from "../../texts";
import type { WholeProps } from "../ControlSwitch";
import { labelId } from "../FieldFrame";
import { FieldView } from "../FieldView";
import { type Field, fieldsOfObject, strayField } from "../fields";
import classes from "../forms.module.css";
import { isFields, plainSchema } from "../schema";
import { useRowKeys } from "../useRowKeys";

/** The fields of an object: what its schema names, then what else is in it. */
function fieldsIn(
  field: Field,
  schema: JsonFields,
  value: Json | undefined,
  path: readonly string[],
): readonly Field[] {
  const known = fieldsOfObject(schema, field.schemaRoot, path);
  const names = new Set(known.map((one) => one.path.at(-1)));
  const others = isFields(value) ? Object.keys(value).filter((key) => !names.has(key)) : [];
  return [...known, ...others.map((key) => strayField(key, path))];
}

/** The members of an object, one below the other. */
export function GroupControl({ field, id, value, whole }: WholeProps) {
  const fields = fieldsIn(field, field.schema, value, field.path);
  return (
    <fieldset className={classes.group} aria-labelledby={labelId(id)}>
      {fields.map((one) => (
        <FieldView key={one.key} field={one} value={whole} />
      ))}
    </fieldset>
  );
}

/** Objects of a list: each is a row of fields that can be moved and removed. */
export function RowsControl({ field, id, value, whole, onChange }: WholeProps) {
  const rows = Array.isArray(value) ? (value as readonly Json[]) : [];
  const keys = useRowKeys(rows.length);
  const schema = plainSchema(field.schemaRoot, field.schema.items);
  const put = (next: readonly Json[]): void => onChange(next.length === 0 ? undefined : next);
  const move = (from: number, to: number): void => {
    keys.move(from, to);
    put(moved(rows, from, to));
  };
  return (
    <fieldset className={classes.bare} aria-labelledby={labelId(id)}>
      {rows.map((_, place) => (
        <fieldset key={keys.all[place]} className={classes.row} aria-label={texts.forms.row(place + 1)}>
          <div className={classes.rowHead}>
            <span>{texts.forms.row(place + 1)}</span>
            <RowTools
              place={place}
              count={rows.length}
              onMove={(to) => move(place, to)}
              onRemove={() => {
                keys.remove(place);
                put(rows.filter((__, one) => one !== place));
              }}
            />
          </div>
          {fieldsIn(field, schema, rows[place], [...field.path, String(place)]).map((one) => (
            <FieldView key={one.key} field={one} value={whole} />
          ))}
        </fieldset>
      ))}
      <AddButton label={texts.forms.addRow} onClick={() => put([...rows, {}])} />
    </fieldset>
  );
}

export function moved<T>(items: readonly T[], from: number, to: number): readonly T[] {
  const made = [...items];
  const [one] = made.splice(from, 1);
  if (one !== undefined) made.splice(to, 0, one);
  return made;
}

interface ToolsProps {
  readonly place: number;
  readonly count: number;
  /** What the row is, for a screen reader. */
  readonly name?: string;
  readonly onMove: (to: number) => void;
  readonly onRemove: () => void;
}

export function RowTools({ place, count, name, onMove, onRemove }: ToolsProps) {
  const words = texts.forms.rowTools(name ?? texts.forms.row(place + 1));
  const common = { size: 20, variant: "subtle", color: "gray" } as const;
  return (
    <span className={classes.rowTools}>
      <ActionIcon {...common} aria-label={words.up} disabled={place === 0} onClick={() => onMove(place - 1)}>
        <IconArrowUp size={14} />
      </ActionIcon>
      <ActionIcon
        {...common}
        aria-label={words.down}
        disabled={place === count - 1}
        onClick={() => onMove(place + 1)}
      >
        <IconArrowDown size={14} />
      </ActionIcon>
      <ActionIcon {...common} aria-label={words.remove} onClick={onRemove}>
        <IconTrash size={14} />
      </ActionIcon>
    </span>
  );
}

export function AddButton({ label, onClick }: { readonly label: string; readonly onClick: () => void }) {
  return (
    <Button
      className={classes.add}
      variant="default"
      size="compact-xs"
      leftSection={<IconPlus size={12} />}
      onClick={onClick}
    >
      {label}
    </Button>
  );
}
