import { useState } from "react";
import { setAt } from "../model/document";
import { useDocument, useEditor, useEditorStore } from "../stores/editor";
import { texts } from "../texts";
import classes from "./editor.module.css";
import { nameOf } from "./parts";

/** The name of the workflow, to edit in its place. */
export function WorkflowName() {
  const { actions } = useEditorStore();
  const name = nameOf(useDocument());
  const isReadOnly = useEditor((state) => state.isReadOnly);
  const [text, setText] = useState<string | null>(null);
  if (isReadOnly) return <h1 className={classes.name}>{name || texts.editor.untitled}</h1>;
  const end = (): void => {
    const next = text?.trim();
    if (next && next !== name)
      actions.edit(texts.editor.did.renameWorkflow, (document) =>
        setAt(document, ["metadata", "name"], next),
      );
    setText(null);
  };
  return (
    <h1 className={classes.name}>
      <input
        aria-label={texts.editor.toolbar.name}
        value={text ?? (name || texts.editor.untitled)}
        size={Math.min(40, Math.max(8, (text ?? (name || texts.editor.untitled)).length + 1))}
        onChange={(event) => setText(event.target.value)}
        onBlur={end}
        onKeyDown={(event) => {
          if (event.key === "Enter") event.currentTarget.blur();
          if (event.key === "Escape") setText(null);
        }}
      />
    </h1>
  );
}
