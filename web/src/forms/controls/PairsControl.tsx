import { ActionIcon, TextInput } from "@mantine/core";
import { IconTrash } from "@tabler/icons-react";
import { useState } from "react";
import { loadEditor } from "../../code/CodeEditor";
import type { Json } from "../../model/json/tree";
import { texts } from "../../texts";
import type { ControlProps } from "../ControlSwitch";
import { ExpressionInput } from "../ExpressionInput";
import { labelId } from "../FieldFrame";
import classes from "../forms.module.css";
import { useForm } from "../host";
import { isFields } from "../schema";
import { useDraft } from "../useDraft";
import { isExpression, isSame } from "../values";
import { AddButton } from "./ListControls";

interface Pair {
  readonly id: number;
  readonly name: string;
  readonly text: string;
}

const entriesOf = (value: Json | undefined): readonly (readonly [string, string])[] =>
  isFields(value) ? Object.entries(value).map(([name, text]) => [name, String(text)] as const) : [];

/** The object of the pairs that have a name; of a name that is there twice the last one counts. */
const objectOf = (pairs: readonly Pair[]): Json | undefined => {
  const named = pairs.filter((one) => one.name !== "");
  return named.length === 0 ? undefined : Object.fromEntries(named.map((one) => [one.name, one.text]));
};

let serial = 0;
const pairOf = (name: string, text: string): Pair => {
  serial += 1;
  return { id: serial, name, text };
};

/** Names with texts, as headers of a request. */
export function PairsControl({ field, id, value, onChange }: ControlProps) {
  const [pairs, setPairs] = useState(() => entriesOf(value).map(([name, text]) => pairOf(name, text)));
  // What came from elsewhere, as by an undo, takes the place of what is here.
  const known = objectOf(pairs);
  if (
    !isSame(known, value) &&
    !(value !== undefined && isFields(value) && Object.keys(value).length === 0 && known === undefined)
  ) {
    setPairs(entriesOf(value).map(([name, text]) => pairOf(name, text)));
  }
  const put = (next: readonly Pair[]): void => {
    setPairs([...next]);
    const made = objectOf(next);
    if (!isSame(made, known)) onChange(made);
  };
  const words = texts.forms.pair;
  return (
    <fieldset className={classes.bare} aria-labelledby={labelId(id)}>
      {pairs.map((pair) => (
        <div key={pair.id} className={classes.pair} data-expression={isExpression(pair.text) || undefined}>
          <PairText
            label={words.name}
            value={pair.name}
            onChange={(name) => put(pairs.map((one) => (one.id === pair.id ? { ...one, name } : one)))}
          />
          <PairValue
            label={words.value(pair.name)}
            value={pair.text}
            onChange={(text) => put(pairs.map((one) => (one.id === pair.id ? { ...one, text } : one)))}
          />
          <ActionIcon
            size={24}
            variant="subtle"
            color="gray"
            aria-label={words.remove(pair.name)}
            onClick={() => put(pairs.filter((one) => one.id !== pair.id))}
          >
            <IconTrash size={14} />
          </ActionIcon>
        </div>
      ))}
      <AddButton label={words.add(field.label)} onClick={() => setPairs([...pairs, pairOf("", "")])} />
    </fieldset>
  );
}

interface PairTextProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

function PairText({ label, value, onChange }: PairTextProps) {
  const { isLive } = useForm();
  const draft = useDraft(value, isLive, onChange);
  return (
    <TextInput
      size="xs"
      aria-label={label}
      placeholder={label}
      value={draft.value}
      onChange={(event) => {
        const text = event.currentTarget.value;
        const isTurning = text.startsWith("=") && !draft.value.startsWith("=");
        draft.change(text);
        if (isTurning) void loadEditor().then(draft.flush);
      }}
      onBlur={draft.flush}
    />
  );
}

/** A text, or an expression once it begins with `=`; an expression that is emptied is a text again. */
function PairValue(props: PairTextProps) {
  const { expressions } = useForm();
  const [wantsFocus, setWantsFocus] = useState(false);
  if (expressions === null || !isExpression(props.value)) {
    return (
      <PairText
        {...props}
        onChange={(text) => {
          setWantsFocus(isExpression(text));
          props.onChange(text);
        }}
      />
    );
  }
  return (
    <ExpressionInput
      value={props.value}
      label={props.label}
      isInvalid={false}
      hasFocus={wantsFocus}
      onChange={(next) => props.onChange(next === "=" ? "" : (next ?? ""))}
    />
  );
}
