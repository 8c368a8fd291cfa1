import { NumberInput, Slider } from "@mantine/core";
import type { ControlProps } from "../ControlSwitch";
import { helpId, labelId } from "../FieldFrame";
import classes from "../forms.module.css";
import { useForm } from "../host";
import { typeName } from "../schema";
import { useDraft } from "../useDraft";
import { placeholderOf } from "./TextControls";

const numberIn = (value: unknown): number | "" => (typeof value === "number" ? value : "");

export function NumberControl({ field, id, value, isInvalid, onChange }: ControlProps) {
  const { isLive } = useForm();
  const draft = useDraft<number | string>(numberIn(value), isLive, (next) =>
    onChange(typeof next === "number" ? next : undefined),
  );
  return (
    <NumberInput
      id={id}
      size="xs"
      value={draft.value}
      placeholder={placeholderOf(field)}
      error={isInvalid}
      {...(field.min === undefined ? {} : { min: field.min })}
      {...(field.max === undefined ? {} : { max: field.max })}
      step={field.step ?? 1}
      allowDecimal={typeName(field.schema) !== "integer"}
      // A value out of range is shown as wrong, not changed without a word.
      clampBehavior="none"
      aria-describedby={field.help === undefined ? undefined : helpId(id)}
      aria-required={field.isRequired || undefined}
      onChange={draft.change}
      onBlur={draft.flush}
      onKeyDown={(event) => {
        if (event.key === "Enter" || ((event.ctrlKey || event.metaKey) && event.key === "s")) draft.flush();
      }}
    />
  );
}

/** A number in a narrow range: a slider, and a field beside it for the exact value. */
export function SliderControl(props: ControlProps) {
  const { field, id, value } = props;
  const { isLive } = useForm();
  const { min = 0, max = 100 } = field;
  const step = field.step ?? (max - min) / 100;
  const fallback = typeof field.defaultValue === "number" ? field.defaultValue : min;
  const draft = useDraft(typeof value === "number" ? value : fallback, isLive, (next) =>
    props.onChange(next),
  );
  return (
    <div className={classes.slider}>
      <Slider
        size="sm"
        min={min}
        max={max}
        step={step}
        value={Math.min(Math.max(draft.value, min), max)}
        onChange={draft.change}
        onChangeEnd={draft.flush}
        label={null}
        thumbProps={{ "aria-labelledby": labelId(id) }}
        data-unset={value === undefined || undefined}
      />
      <div className={classes.sliderNumber}>
        <NumberControl {...props} />
      </div>
    </div>
  );
}
