import { CopyButton, UnstyledButton } from "@mantine/core";
import { CodeEditor } from "../code/CodeEditor";
import type { Json } from "../model/json/tree";
import { texts } from "../texts";
import classes from "./inspector.module.css";

interface DataProps {
  readonly label: string;
  readonly value: Json | undefined;
}

const MAX_CHARS = 100_000;

/** A value of a run, as JSON. */
export function ValueView({ label, value }: DataProps) {
  if (value === undefined) return <p className={classes.help}>{texts.forms.noValue}</p>;
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  const shown = text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}\n…` : text;
  return (
    <div className={classes.data}>
      <CopyButton value={text}>
        {({ copied, copy }) => (
          <UnstyledButton
            className={classes.copy}
            onClick={copy}
            aria-label={copied ? texts.copied : texts.forms.copyValue(label)}
          >
            {copied ? texts.copied : texts.copy}
          </UnstyledButton>
        )}
      </CopyButton>
      <CodeEditor
        value={shown}
        label={label}
        language={typeof value === "string" ? undefined : "json"}
        isReadOnly
        minLines={1}
        maxLines={20}
      />
    </div>
  );
}
