import { useCallback, useMemo, useRef } from "react";
import type { Widget } from "../model/definition";
import type { Json } from "../model/json/tree";
import { FieldView } from "./FieldView";
import { fieldsOf, strayKeys } from "./fields";
import classes from "./forms.module.css";
import { type ExpressionScope, type FieldError, FormContext, type FormHost } from "./host";
import { StrayFields } from "./StrayFields";
import { isBelow, pointerOf, withValue } from "./values";

export type { FieldError } from "./host";

export interface FieldChange {
  readonly path: readonly string[];
  /** Undefined: it was removed. */
  readonly value: Json | undefined;
  /** The JSON that was typed, if it was typed as JSON. */
  readonly text?: string | undefined;
}

export interface SchemaFormProps {
  /** A JSON Schema of an object. */
  readonly schema?: Json | undefined;
  /** Take precedence over what the schema alone would show. */
  readonly widgets?: readonly Widget[] | null | undefined;
  readonly value: Json | undefined;
  /** With the whole value, and what of it was changed. */
  readonly onChange?: (value: Json, change: FieldChange) => void;
  readonly readOnly?: boolean;
  readonly errors?: readonly FieldError[] | undefined;
  /** Tell of each keystroke, not of each finished field. */
  readonly isLive?: boolean;
  /** For widgets that show results. */
  readonly results?: Json | undefined;
  /** With it each field can also be an expression. */
  readonly expressions?: ExpressionScope | null | undefined;
  /** Which fields that is: all of them, or those that the schema marks with `x-expression`. */
  readonly expressionFields?: "all" | "marked";
  /** Fields that an edge fills, by pointers into the value: what they come from. */
  readonly wired?: ReadonlyMap<string, string> | undefined;
  /** Where the value is in its document: pointers of fields begin with it. */
  readonly pointer?: string;
  readonly sourceAt?: (path: readonly string[]) => string | undefined;
  /** Members that neither the schema nor a widget names are shown too; the default where there are widgets. */
  readonly showsStray?: boolean;
}

const NOTHING: readonly FieldError[] = [];
const noSource = (): undefined => undefined;

/** A form from widgets, a JSON Schema, or both. */
export function SchemaForm(props: SchemaFormProps) {
  const { schema, widgets, value, onChange, readOnly = false, errors = NOTHING, isLive = false } = props;
  const {
    results,
    expressions = null,
    pointer = "",
    sourceAt = noSource,
    showsStray = widgets != null,
  } = props;
  const { wired } = props;
  const isMarked = props.expressionFields === "marked";
  const fields = useMemo(() => fieldsOf(schema, widgets), [schema, widgets]);
  // Two fields may be finished in one turn: the second must see what the first has changed.
  const latest = useRef(value);
  latest.current = value;
  const change = useCallback<FormHost["change"]>(
    (path, next, text) => {
      const whole = withValue(latest.current ?? {}, path, next) ?? {};
      latest.current = whole;
      onChange?.(whole, { path, value: next, text });
    },
    [onChange],
  );
  const host = useMemo<FormHost>(
    () => ({
      isReadOnly: readOnly,
      isLive,
      results,
      errors,
      expressions,
      isMarked,
      wired,
      pointer,
      sourceAt,
      change,
    }),
    [readOnly, isLive, results, errors, expressions, isMarked, wired, pointer, sourceAt, change],
  );
  const unplaced = errors.filter(
    (one) => !fields.some((field) => isBelow(one.pointer, pointerOf(field.path))),
  );
  const stray = showsStray ? strayKeys(fields, value) : [];
  return (
    <FormContext value={host}>
      <div className={classes.form}>
        {unplaced.map((one) => (
          <div key={one.pointer + one.message} className={classes.error}>
            {one.message}
          </div>
        ))}
        {fields.map((field) => (
          <FieldView key={field.key} field={field} value={value} />
        ))}
        {stray.length > 0 && <StrayFields keys={stray} value={value} />}
      </div>
    </FormContext>
  );
}
