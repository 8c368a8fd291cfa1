import { useEffect, useId, useRef, useState } from "react";
import type { Json } from "../model/json/tree";
import { texts } from "../texts";
import { ControlSwitch } from "./ControlSwitch";
import { ExpressionInput } from "./ExpressionInput";
import { forgetField, useLastField, withReference } from "./expressions/sources";
import { ExpressionToggle, FieldFrame, ResetButton } from "./FieldFrame";
import { type Control, controlFor, type Field } from "./fields";
import { type FieldError, type FormHost, useForm } from "./host";
import { ReadOnlyValue } from "./ReadOnlyValue";
import { secretName } from "./references";
import { isBelow, isExpression, pointerOf, shortText, valueIn } from "./values";

/** Controls that hold other controls: a label names them all. */
const GROUPS: ReadonlySet<Control> = new Set(["rows", "group", "pairs", "slider"]);
/** CodeMirror has a label of its own. */
const EDITORS: ReadonlySet<Control> = new Set(["json", "code", "condition"]);
/** Controls that a person empties by hand. */
const EMPTIED: ReadonlySet<Control> = new Set([
  "string",
  "text",
  "number",
  "code",
  "tags",
  "choices",
  "enum",
  "secret",
]);

interface FieldProps {
  readonly field: Field;
  /** The value of the whole form. */
  readonly value: Json | undefined;
}

/** Whether the value is an expression here, not a text that happens to begin as one. */
function isExpressionIn(field: Field, value: Json | undefined, host: FormHost): value is string {
  return (
    isExpression(value) &&
    canBeExpression(field, host) &&
    !(field.control === "secret" && secretName(value) !== "")
  );
}

function canBeExpression(field: Field, { expressions, isMarked }: FormHost): boolean {
  return (
    expressions !== null && field.control !== "condition" && (!isMarked || field.mayBeExpression === true)
  );
}

/** One field: the control that fits, an expression, or the value as text. */
export function FieldView({ field, value: whole }: FieldProps) {
  const host = useForm();
  const id = useId();
  const isShown = host.isReadOnly || field.mode === "read" || field.root === "results";
  const value = valueIn(field.root === "results" ? host.results : whole, field.path);
  const pointer = field.root === "results" ? undefined : host.pointer + pointerOf(field.path);
  const control = isExpressionIn(field, value, host) ? field.control : controlFor(field, value);
  const errors = field.root === "results" ? [] : errorsAt(host.errors, pointerOf(field.path), control);
  const frame = {
    id,
    label: field.label,
    // What a field is for helps whoever fills it.
    help: host.isReadOnly ? undefined : field.help,
    unit: field.unit,
    errors: field.problem === undefined ? errors : [...errors, field.problem],
    pointer,
  };
  const source = field.root === "results" ? undefined : host.wired?.get(pointerOf(field.path));
  if (isShown) {
    return (
      <FieldFrame {...frame} isGroup source={source}>
        {(source === undefined || value !== undefined) && (
          <ReadOnlyValue field={field} value={value} labelledBy={`${id}-label`} />
        )}
      </FieldFrame>
    );
  }
  return <EditedField {...{ field, value, whole, control, frame, source }} />;
}

/** What is wrong inside of a control that holds no fields is told at the control itself. */
function errorsAt(errors: readonly FieldError[], place: string, control: Control): readonly string[] {
  const isMeant = (pointer: string): boolean =>
    control === "group" || control === "rows" ? pointer === place : isBelow(pointer, place);
  return [...new Set(errors.filter((one) => isMeant(one.pointer)).map((one) => one.message))];
}

interface EditedProps extends FieldProps {
  readonly control: Control;
  /** Where the value comes from, if a wire brings it. */
  readonly source: string | undefined;
  readonly frame: {
    readonly id: string;
    readonly label: string;
    readonly help: string | undefined;
    readonly unit: string | undefined;
    readonly errors: readonly string[];
    readonly pointer: string | undefined;
  };
}

function EditedField({
  field,
  value,
  whole,
  control,
  source,
  frame,
}: EditedProps & { readonly whole: Json | undefined }) {
  const host = useForm();
  const hasExpression = isExpressionIn(field, value, host);
  // An expression that has just begun takes the focus of the control that it replaces.
  const [wantsFocus, setWantsFocus] = useState(false);
  const [before, setBefore] = useState<Json | undefined>(undefined);
  const change = (next: Json | undefined, text?: string): void => {
    if (!hasExpression && isExpression(next)) {
      setBefore(value);
      setWantsFocus(true);
    }
    host.change(field.path, next, text);
  };
  const toggle = (): void => change(hasExpression ? before : `=${expressionOf(value)}`);
  const taking = useTaking(field.label, canBeExpression(field, host), (path) =>
    change(withReference(value, path)),
  );
  const canReset =
    value !== undefined && (field.defaultValue !== undefined || (!field.isRequired && !EMPTIED.has(control)));
  return (
    <FieldFrame
      {...frame}
      isRequired={field.isRequired}
      isInline={control === "boolean" && !hasExpression}
      isGroup={GROUPS.has(control) || hasExpression || EDITORS.has(control)}
      hint={hintOf(field, control, value)}
      onFocus={taking?.onFocus}
      // An expression takes a dropped text itself, where the pointer is.
      onTake={hasExpression ? undefined : taking?.take}
      source={source}
      actions={
        <>
          {canReset && <ResetButton label={field.label} onClick={() => change(undefined)} />}
          {canBeExpression(field, host) && (
            <ExpressionToggle label={field.label} isOn={hasExpression} onToggle={toggle} />
          )}
        </>
      }
    >
      {hasExpression ? (
        <ExpressionInput
          value={value}
          label={field.label}
          onChange={change}
          isInvalid={frame.errors.length > 0}
          hasFocus={wantsFocus}
        />
      ) : (
        <ControlSwitch
          control={control}
          field={field}
          id={frame.id}
          value={value}
          whole={whole}
          isInvalid={frame.errors.length > 0}
          onChange={change}
        />
      )}
    </FieldFrame>
  );
}

/** What a field needs to take values of other steps; null if it cannot be an expression. */
function useTaking(label: string, isTaking: boolean, take: (path: string) => void) {
  const id = useId();
  const latest = useRef(take);
  latest.current = take;
  useEffect(() => () => forgetField(id), [id]);
  if (!isTaking) return null;
  const now = (path: string): void => latest.current(path);
  return { take: now, onFocus: () => useLastField.setState({ field: { id, label, take: now } }) };
}

/** A value as the expression that gives it: a text is quoted, as Python and JSON both read it. */
const expressionOf = (value: Json | undefined): string => (value == null ? "" : JSON.stringify(value));

function hintOf(field: Field, control: Control, value: Json | undefined): string | undefined {
  if (field.unknownComponent !== undefined) return texts.forms.unknownComponent(field.unknownComponent);
  if (control === "json" && field.control !== "json" && value !== undefined)
    return texts.forms.otherType(shortText(value));
  return undefined;
}
