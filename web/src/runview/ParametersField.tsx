import { SegmentedControl } from "@mantine/core";
import { useId, useState } from "react";
import { CodeEditor } from "../code/CodeEditor";
import { fieldsOf } from "../forms/fields";
import type { ExpressionScope } from "../forms/host";
import { SchemaForm } from "../forms/SchemaForm";
import type { Widget } from "../model/definition";
import type { Json } from "../model/json/tree";
import { texts } from "../texts";
import classes from "./dialogs.module.css";

export type Fields = Readonly<Record<string, Json>>;

interface Props {
  readonly label: string;
  readonly schema?: Json | undefined;
  readonly widgets?: readonly Widget[] | null | undefined;
  readonly value: Fields;
  /** Null: what stands there cannot be used. */
  readonly onChange: (value: Fields | null) => void;
  /** Fields may hold expressions. They are kept; there is nothing here to complete them with. */
  readonly hasExpressions?: boolean;
}

const PLAIN: ExpressionScope = {
  complete: () => null,
  preview: () => ({ kind: "later" }),
  question: () => null,
};

function read(text: string): Fields | null {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as Fields) : null;
  } catch {
    return null;
  }
}

/** Members of an object: as a form where a schema says what they are, and as JSON. */
export function ParametersField({ label, schema, widgets, value, onChange, hasExpressions = false }: Props) {
  const words = texts.runView.rerun;
  const canForm = fieldsOf(schema, widgets).length > 0;
  const [isForm, setIsForm] = useState(canForm);
  const [text, setText] = useState("");
  const name = useId();
  const isGood = isForm || read(text) !== null;
  const show = (next: string): void => {
    setText(JSON.stringify(value, null, 2));
    setIsForm(next === "form");
  };
  return (
    <fieldset className={classes.parameters} aria-labelledby={name}>
      <div className={classes.parametersHead}>
        <strong id={name}>{label}</strong>
        {canForm && (
          <SegmentedControl
            size="xs"
            aria-label={texts.runView.values.showAs}
            value={isForm ? "form" : "json"}
            onChange={show}
            data={[
              { value: "form", label: words.form },
              { value: "json", label: words.json },
            ]}
          />
        )}
      </div>
      {isForm ? (
        <SchemaForm
          schema={schema}
          widgets={widgets}
          value={value}
          onChange={(next) => onChange(next as Fields)}
          isLive
          showsStray
          expressions={hasExpressions ? PLAIN : null}
        />
      ) : (
        <CodeEditor
          label={label}
          language="json"
          value={text === "" ? JSON.stringify(value, null, 2) : text}
          isInvalid={!isGood}
          onChange={(next) => {
            setText(next);
            onChange(read(next));
          }}
        />
      )}
      {!isGood && text !== "" && <small className={classes.problem}>{words.badJson}</small>}
    </fieldset>
  );
}
