import { useState } from "react";
import { texts } from "../texts";
import classes from "./canvas.module.css";
import { useDecor } from "./decor";

interface Props {
  readonly id: string;
  readonly label: string;
  /** The name of the field. */
  readonly field?: string;
}

/** The label of a step or a group; F2 or a double click makes it a field. */
export function NodeName({ id, label, field = texts.canvas.stepName }: Props) {
  const isNaming = useDecor((decor) => decor.naming === id);
  return isNaming ? (
    <NameField id={id} label={label} field={field} />
  ) : (
    <span className={classes.label} title={label}>
      {label}
    </span>
  );
}

function NameField({ id, label, field }: Required<Props>) {
  const actions = useDecor((decor) => decor.actions);
  const [text, setText] = useState(label);
  const end = (value: string | null): void => actions?.rename(id, value);
  return (
    <input
      className={`${classes.nameField} nodrag nopan`}
      aria-label={field}
      value={text}
      ref={focused}
      onChange={(event) => setText(event.target.value)}
      onBlur={() => end(text.trim() === label ? null : text.trim())}
      onKeyDown={(event) => {
        event.stopPropagation();
        if (event.key === "Enter") event.currentTarget.blur();
        if (event.key === "Escape") end(null);
      }}
    />
  );
}

const focused = (field: HTMLInputElement | null): void => field?.select();
