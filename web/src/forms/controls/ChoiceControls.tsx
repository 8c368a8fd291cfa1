import { MultiSelect, Select, Switch, TagsInput } from "@mantine/core";
import type { Json } from "../../model/json/tree";
import { texts } from "../../texts";
import type { ControlProps } from "../ControlSwitch";
import { helpId } from "../FieldFrame";
import type { Choice } from "../fields";
import { plainSchema, typeName } from "../schema";
import { isSame, shortText } from "../values";
import { placeholderOf } from "./TextControls";

export function BooleanControl({ field, id, value, onChange }: ControlProps) {
  const shown = typeof value === "boolean" ? value : field.defaultValue === true;
  return (
    <Switch
      id={id}
      size="xs"
      checked={shown}
      data-unset={value === undefined || undefined}
      aria-describedby={field.help === undefined ? undefined : helpId(id)}
      onChange={(event) => {
        const next = event.currentTarget.checked;
        onChange(next === field.defaultValue ? undefined : next);
      }}
    />
  );
}

/** Values of a choice may be of any type; the list of Mantine knows texts, so that it is given their places. */
function listed(choices: readonly Choice[], values: readonly Json[]): readonly Choice[] {
  const strange = values.filter((value) => !choices.some((one) => isSame(one.value, value)));
  return [...choices, ...strange.map((value) => ({ label: texts.forms.notInList(shortText(value)), value }))];
}

const dataOf = (choices: readonly Choice[]) =>
  choices.map((one, place) => ({ value: String(place), label: one.label }));

const placeIn = (choices: readonly Choice[], value: Json): string =>
  String(choices.findIndex((one) => isSame(one.value, value)));

const LONG_LIST = 8;

export function EnumControl({ field, id, value, isInvalid, onChange }: ControlProps) {
  const choices = listed(field.choices ?? [], value === undefined || value === null ? [] : [value]);
  const usual = field.choices?.find((one) => isSame(one.value, field.defaultValue))?.label;
  return (
    <Select
      id={id}
      data={dataOf(choices)}
      value={value === undefined || value === null ? null : placeIn(choices, value)}
      placeholder={usual ?? placeholderOf(field) ?? texts.forms.choose}
      error={isInvalid}
      searchable={choices.length > LONG_LIST}
      clearable={!field.isRequired || field.defaultValue !== undefined}
      allowDeselect={false}
      clearButtonProps={{ "aria-label": texts.forms.clear(field.label) }}
      aria-describedby={field.help === undefined ? undefined : helpId(id)}
      aria-required={field.isRequired || undefined}
      comboboxProps={{ withinPortal: true }}
      onChange={(place) => onChange(place === null ? undefined : choices[Number(place)]?.value)}
    />
  );
}

const itemsOf = (value: Json | undefined): readonly Json[] => (Array.isArray(value) ? value : []);

export function ChoicesControl({ field, id, value, isInvalid, onChange }: ControlProps) {
  const values = itemsOf(value);
  const choices = listed(field.choices ?? [], values);
  const usual = itemsOf(field.defaultValue).map(shortText).join(", ");
  return (
    <MultiSelect
      id={id}
      size="xs"
      data={dataOf(choices)}
      value={values.map((one) => placeIn(choices, one))}
      placeholder={values.length > 0 ? undefined : usual || texts.forms.choose}
      error={isInvalid}
      clearable
      clearButtonProps={{ "aria-label": texts.forms.clear(field.label) }}
      aria-describedby={field.help === undefined ? undefined : helpId(id)}
      onChange={(places) =>
        onChange(places.length === 0 ? undefined : places.flatMap((one) => choices[Number(one)]?.value ?? []))
      }
    />
  );
}

export function TagsControl({ field, id, value, isInvalid, onChange }: ControlProps) {
  const items = plainSchema(field.schemaRoot, field.schema.items);
  const isNumber = typeName(items) === "number" || typeName(items) === "integer";
  const values = itemsOf(value).map(shortText);
  const usual = itemsOf(field.defaultValue).map(shortText).join(", ");
  return (
    <TagsInput
      id={id}
      size="xs"
      value={values}
      placeholder={values.length > 0 ? undefined : usual || texts.forms.addItem}
      error={isInvalid}
      splitChars={isNumber ? [",", " "] : [","]}
      allowDuplicates={field.schema.uniqueItems !== true}
      acceptValueOnBlur
      clearable
      clearButtonProps={{ "aria-label": texts.forms.clear(field.label) }}
      aria-describedby={field.help === undefined ? undefined : helpId(id)}
      onChange={(next) => {
        const made = isNumber ? next.map(Number).filter(Number.isFinite) : next;
        onChange(made.length === 0 ? undefined : made);
      }}
    />
  );
}
