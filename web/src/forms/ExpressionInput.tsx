import { CodeEditor } from "../code/CodeEditor";
import { texts } from "../texts";
import classes from "./forms.module.css";
import { type Preview, useForm } from "./host";
import { useDraft } from "./useDraft";
import { usePreview } from "./usePreview";
import { shortText } from "./values";

interface ExpressionProps {
  /** With the `=` in front. */
  readonly value: string;
  readonly label: string;
  readonly isInvalid: boolean;
  readonly hasFocus?: boolean;
  readonly onChange: (value: string | undefined) => void;
}

/** An expression with completion, and what it gives by the last run. */
export function ExpressionInput({ value, label, isInvalid, hasFocus = false, onChange }: ExpressionProps) {
  const { expressions, isLive } = useForm();
  const draft = useDraft(value.slice(1), isLive, (text) => onChange(`=${text}`));
  const preview = usePreview(expressions, draft.value);
  return (
    <div className={classes.expression}>
      <span className={classes.equals} aria-hidden="true">
        =
      </span>
      <div className={classes.expressionCode}>
        <CodeEditor
          value={draft.value}
          label={texts.forms.expressionOf(label)}
          language="expression"
          isSingleLine
          maxLines={8}
          hasFocus={hasFocus}
          isInvalid={isInvalid}
          complete={expressions === null ? undefined : (before) => expressions.complete(before)}
          onChange={draft.change}
          onBlur={draft.flush}
        />
        {preview !== null && <PreviewLine preview={preview} />}
      </div>
    </div>
  );
}

function PreviewLine({ preview }: { readonly preview: Preview }) {
  const words = texts.forms.preview;
  if (preview.kind === "value") {
    const text = shortText(preview.value);
    return (
      <div className={classes.preview} title={text}>
        <span className={classes.previewLabel}>{words.lastRun}</span>{" "}
        <code>{text === "" ? words.empty : text}</code>
      </div>
    );
  }
  return <div className={classes.preview}>{preview.kind === "later" ? words.later : preview.reason}</div>;
}
