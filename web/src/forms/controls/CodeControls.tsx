import { Button, SegmentedControl } from "@mantine/core";
import { useMemo, useState } from "react";
import type { CodeMark } from "../../code/CodeEditor";
import { dedented } from "../../model/json/lines";
import type { Json } from "../../model/json/tree";
import { JsonTextError, parseNode, plainOf } from "../../model/json/tree";
import { texts } from "../../texts";
import { type ControlProps, ControlSwitch, type WholeProps } from "../ControlSwitch";
import { controlFor, formOf } from "../fields";
import classes from "../forms.module.css";
import { useForm } from "../host";
import { typesOf } from "../schema";
import { useDraft } from "../useDraft";
import { LargeEditor } from "./LargeEditor";
import { placeholderOf } from "./TextControls";

export function CodeControl({ field, value, isInvalid, onChange }: ControlProps) {
  const { isLive } = useForm();
  const given = typeof value === "string" ? value : "";
  const draft = useDraft(given, isLive, (text) => onChange(text === "" ? undefined : text));
  return (
    <LargeEditor
      value={draft.value}
      label={field.label}
      language={field.language}
      placeholder={placeholderOf(field)}
      isInvalid={isInvalid}
      minLines={field.rows ?? 6}
      maxLines={Math.max(20, field.rows ?? 0)}
      hasLineNumbers
      onChange={draft.change}
      onBlur={draft.flush}
    />
  );
}

/** Any value: as a form where the schema says enough for one, and as JSON. */
export function JsonControl(props: WholeProps) {
  const { field, value } = props;
  const form = formOf(field);
  const asForm = form === undefined ? undefined : { ...field, control: form };
  const canForm = asForm !== undefined && controlFor(asForm, value) === form;
  const [isText, setText] = useState(false);
  if (asForm === undefined || form === undefined) return <JsonText {...props} />;
  return (
    <div className={classes.stack}>
      <SegmentedControl
        className={classes.views}
        size="xs"
        aria-label={texts.forms.viewOf(field.label)}
        value={canForm && !isText ? "form" : "json"}
        onChange={(view) => setText(view === "json")}
        data={[
          { value: "form", label: texts.forms.asForm, disabled: !canForm },
          { value: "json", label: texts.forms.asJson },
        ]}
      />
      {canForm && !isText ? (
        <ControlSwitch {...props} control={form} field={withChoices(asForm)} />
      ) : (
        <JsonText {...props} />
      )}
    </div>
  );
}

/** The choices of a list, which a JSON field has no need of. */
function withChoices(field: ControlProps["field"]): ControlProps["field"] {
  if (field.control !== "choices") return field;
  const items = field.schema.items as { readonly enum?: readonly Json[] } | undefined;
  const choices = (items?.enum ?? []).map((value) => ({ label: String(value), value }));
  return { ...field, choices };
}

interface Parsed {
  readonly value?: Json;
  readonly error?: JsonTextError;
}

function parsed(text: string): Parsed {
  try {
    return { value: plainOf(parseNode(text)) };
  } catch (error) {
    if (error instanceof JsonTextError) return { error };
    throw error;
  }
}

/** JSON as text. What is not JSON stays in the field, marked, and is not written. */
function JsonText({ field, value, isInvalid, onChange }: ControlProps) {
  const host = useForm();
  const source = host.sourceAt(field.path);
  const given = useMemo(() => {
    if (value === undefined) return "";
    return source === undefined ? JSON.stringify(value, null, 2) : dedented(source);
  }, [value, source]);
  const draft = useDraft(given, host.isLive, (text) => {
    const read = parsed(text);
    if (text.trim() === "") onChange(undefined);
    else if (read.value !== undefined) onChange(read.value, text.trim());
    else if (text.startsWith("=") && host.expressions !== null && !host.isMarked) onChange(text);
  });
  const types = typesOf(field.schema);
  const takesText = types.length === 0 || types.includes("string");
  const problem = useMemo(
    () => (draft.value.trim() === "" ? undefined : parsed(draft.value).error),
    [draft.value],
  );
  const marks = useMemo<readonly CodeMark[]>(() => {
    if (problem === undefined) return [];
    return [{ from: problem.offset, to: problem.offset + 1, message: problem.message }];
  }, [problem]);
  return (
    <div className={classes.stack}>
      <LargeEditor
        value={draft.value}
        label={field.label}
        language="json"
        placeholder={placeholderOf(field)}
        isInvalid={isInvalid || problem !== undefined}
        minLines={field.isCollapsed || value === undefined ? 1 : 2}
        maxLines={16}
        marks={marks}
        onChange={draft.change}
        onBlur={draft.flush}
      />
      {problem !== undefined && !draft.value.startsWith("=") && (
        <div className={classes.asText}>
          <span className={classes.error}>{texts.forms.notJson(problem.message)}</span>
          {takesText && (
            <Button size="compact-xs" variant="default" onClick={() => onChange(draft.value)}>
              {texts.forms.useAsText}
            </Button>
          )}
        </div>
      )}
    </div>
  );
}
