import { ColorInput, Textarea, TextInput } from "@mantine/core";
import type { KeyboardEvent } from "react";
import { loadEditor } from "../../code/CodeEditor";
import { texts } from "../../texts";
import type { ControlProps } from "../ControlSwitch";
import { helpId } from "../FieldFrame";
import type { Field } from "../fields";
import classes from "../forms.module.css";
import { useForm } from "../host";
import { type Draft, useDraft } from "../useDraft";
import { shortText } from "../values";

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

/** What an empty field means: nothing is written, unless the default is a text that is to be replaced by none. */
const givenBy = (field: Field, text: string): string | undefined =>
  text !== "" || (typeof field.defaultValue === "string" && field.defaultValue !== "") ? text : undefined;

export const placeholderOf = (field: Field): string | undefined =>
  field.defaultValue === undefined ? field.placeholder : shortText(field.defaultValue);

function useTextDraft({ field, value, onChange }: ControlProps): Draft<string> {
  const { isLive } = useForm();
  return useDraft(textOf(value), isLive, (text) => onChange(givenBy(field, text)));
}

/** Enter finishes a field of one line; so does what saves or runs, before the page gets to know of it. */
function finishing(flush: () => void) {
  return (event: KeyboardEvent): void => {
    if (event.key === "Enter" || ((event.ctrlKey || event.metaKey) && event.key === "s")) flush();
  };
}

const common = (props: ControlProps, draft: Draft<string>) => ({
  id: props.id,
  size: "xs" as const,
  value: draft.value,
  error: props.isInvalid,
  "aria-describedby": props.field.help === undefined ? undefined : helpId(props.id),
  "aria-required": props.field.isRequired || undefined,
  onBlur: draft.flush,
  onKeyDown: finishing(draft.flush),
});

export function StringControl(props: ControlProps) {
  const draft = useTextDraft(props);
  const isAddress = props.field.schema.format === "uri" || props.field.schema.format === "email";
  return (
    <TextInput
      {...common(props, draft)}
      placeholder={placeholderOf(props.field)}
      onChange={(event) => {
        const text = event.currentTarget.value;
        const isTurning = text.startsWith("=") && !draft.value.startsWith("=");
        draft.change(text);
        // The field turns into an expression as soon as the editor for one is there.
        if (isTurning) void loadEditor().then(draft.flush);
      }}
      spellCheck={!isAddress}
      autoComplete="off"
    />
  );
}

export function TextControl(props: ControlProps) {
  const draft = useTextDraft(props);
  return (
    <Textarea
      {...common(props, draft)}
      placeholder={placeholderOf(props.field)}
      onChange={(event) => draft.change(event.currentTarget.value)}
      onKeyDown={(event) => {
        if ((event.ctrlKey || event.metaKey) && (event.key === "s" || event.key === "Enter")) draft.flush();
      }}
      autosize
      minRows={props.field.rows ?? 3}
      maxRows={Math.max(14, props.field.rows ?? 0)}
    />
  );
}

/** Dates and times are texts of RFC 3339. What the browser's control cannot show is edited as text. */
export function DateControl(props: ControlProps & { readonly type: "date" | "datetime-local" | "time" }) {
  const { type, ...rest } = props;
  const draft = useTextDraft(rest);
  const shown = type === "datetime-local" ? draft.value.replace(/Z$/, "") : draft.value;
  const isPlain = draft.value === "" || PLAIN[type].test(draft.value);
  return (
    <TextInput
      {...common(rest, draft)}
      type={isPlain ? type : "text"}
      step={type === "date" ? undefined : 1}
      value={isPlain ? shown : draft.value}
      onChange={(event) => {
        const text = event.currentTarget.value;
        draft.change(isPlain && type === "datetime-local" && text !== "" ? asUtc(text) : text);
      }}
      rightSection={type === "datetime-local" ? <span className={classes.unit}>UTC</span> : undefined}
      rightSectionWidth={type === "datetime-local" ? 36 : undefined}
    />
  );
}

const PLAIN = {
  date: /^\d{4}-\d{2}-\d{2}$/,
  "datetime-local": /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2})?Z$/,
  time: /^\d{2}:\d{2}(:\d{2})?$/,
} as const;

const asUtc = (text: string): string => `${text.length === 16 ? `${text}:00` : text}Z`;

export function ColorControl(props: ControlProps) {
  const draft = useTextDraft(props);
  return (
    <ColorInput
      {...common(props, draft)}
      onChange={draft.change}
      placeholder={placeholderOf(props.field)}
      eyeDropperButtonProps={{ "aria-label": texts.forms.pickColour(props.field.label) }}
    />
  );
}
