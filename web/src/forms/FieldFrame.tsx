import { ActionIcon, Tooltip } from "@mantine/core";
import { IconMathFunction, IconPlugConnected, IconRestore } from "@tabler/icons-react";
import { type DragEvent, type ReactNode, useState } from "react";
import { texts } from "../texts";
import { EXPRESSION_DATA } from "./expressions/sources";
import classes from "./forms.module.css";

interface FrameProps {
  readonly id: string;
  readonly label: string;
  readonly isRequired?: boolean;
  readonly help?: string | undefined;
  readonly hint?: string | undefined;
  readonly unit?: string | undefined;
  /** What fills the field instead. */
  readonly source?: string | undefined;
  readonly errors?: readonly string[];
  readonly pointer?: string | undefined;
  /** The control stands beside the label, not below it. */
  readonly isInline?: boolean;
  /** The control is a group of controls, which the label names. */
  readonly isGroup?: boolean;
  readonly actions?: ReactNode;
  /** Takes a value that is dropped on it, as the expression that names it. */
  readonly onTake?: ((path: string) => void) | undefined;
  readonly onFocus?: (() => void) | undefined;
  readonly children: ReactNode;
}

export const helpId = (id: string): string => `${id}-help`;
export const labelId = (id: string): string => `${id}-label`;

/** What is around each control: its label, what it means, and what is wrong with it. */
export function FieldFrame(props: FrameProps) {
  const { id, label, isRequired = false, help, hint, unit, errors = [], pointer, isInline = false } = props;
  const name = (
    <>
      {label}
      {unit !== undefined && <span className={classes.unit}> ({unit})</span>}
      {isRequired && (
        <span className={classes.required} title={texts.forms.required} aria-hidden="true">
          {" *"}
        </span>
      )}
    </>
  );
  const [isOver, setOver] = useState(false);
  const { onTake } = props;
  const takes = (event: DragEvent): boolean =>
    onTake !== undefined && event.dataTransfer.types.includes(EXPRESSION_DATA);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: with the keyboard values are inserted from their tree
    <div
      className={classes.field}
      data-pointer={pointer}
      data-invalid={errors.length > 0 || undefined}
      data-over={isOver || undefined}
      onFocusCapture={props.onFocus}
      onDragOver={(event) => {
        if (!takes(event)) return;
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDropCapture={(event) => {
        setOver(false);
        if (!takes(event)) return;
        event.preventDefault();
        // A code editor in the field would take the text as well.
        event.stopPropagation();
        onTake?.(event.dataTransfer.getData(EXPRESSION_DATA));
      }}
    >
      <div className={classes.labelRow}>
        {props.isGroup ? (
          <span className={classes.label} id={labelId(id)}>
            {name}
          </span>
        ) : (
          <label className={classes.label} id={labelId(id)} htmlFor={id}>
            {name}
          </label>
        )}
        <span className={classes.actions}>
          {props.actions}
          {isInline && props.children}
        </span>
      </div>
      {props.source !== undefined && (
        <div className={classes.source}>
          <IconPlugConnected size={14} aria-hidden="true" />
          {texts.forms.wiredTo(props.source)}
        </div>
      )}
      {!isInline && props.children}
      {errors.map((error) => (
        <div key={error} className={classes.error}>
          {error}
        </div>
      ))}
      {(help !== undefined || hint !== undefined) && (
        <div className={classes.help} id={helpId(id)}>
          {help}
          {hint !== undefined && <span className={classes.hint}>{hint}</span>}
        </div>
      )}
    </div>
  );
}

export function ResetButton({ label, onClick }: { readonly label: string; readonly onClick: () => void }) {
  const words = texts.forms.reset(label);
  return (
    <Tooltip label={words}>
      <ActionIcon size={20} variant="subtle" color="gray" aria-label={words} onClick={onClick}>
        <IconRestore size={14} />
      </ActionIcon>
    </Tooltip>
  );
}

interface ToggleProps {
  readonly label: string;
  readonly isOn: boolean;
  readonly onToggle: () => void;
}

/** Switches a field between a fixed value and an expression. */
export function ExpressionToggle({ label, isOn, onToggle }: ToggleProps) {
  const words = isOn ? texts.forms.toFixedValue(label) : texts.forms.toExpression(label);
  return (
    <Tooltip label={words}>
      <ActionIcon
        size={20}
        variant={isOn ? "light" : "subtle"}
        color={isOn ? "accent" : "gray"}
        aria-label={words}
        aria-pressed={isOn}
        onClick={onToggle}
      >
        <IconMathFunction size={14} />
      </ActionIcon>
    </Tooltip>
  );
}
