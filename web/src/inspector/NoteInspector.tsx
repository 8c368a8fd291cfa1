import { Button } from "@mantine/core";
import { IconTrash } from "@tabler/icons-react";
import { useCallback, useMemo } from "react";
import { SchemaForm } from "../forms/SchemaForm";
import { EDITOR_KEY } from "../model/definition";
import { notesOf, type WorkflowDocument } from "../model/document";
import { removeNote } from "../model/edits/canvas";
import type { Json } from "../model/json/tree";
import { useDocument, useEditorStore } from "../stores/editor";
import { texts } from "../texts";
import { useFormEdit, useInspector } from "./context";
import classes from "./inspector.module.css";

const words = texts.forms.note;
const SCHEMA: Json = {
  type: "object",
  properties: {
    text: { type: "string", maxLength: 16_384, title: words.text.title, description: words.text.description },
    color: {
      type: "string",
      format: "color",
      title: words.color.title,
      description: words.color.description,
    },
  },
};

/** A note on the canvas. */
export function NoteInspector({ id }: { readonly id: string }) {
  const document = useDocument();
  const { isReadOnly } = useInspector();
  const { actions } = useEditorStore();
  const note = useMemo(() => notesOf(document).find((one) => one.id === id), [document, id]);
  const pathOf = useCallback(
    (edited: WorkflowDocument) => [EDITOR_KEY, "notes", notesOf(edited).findIndex((one) => one.id === id)],
    [id],
  );
  const edit = useFormEdit(pathOf);
  return (
    <>
      <header className={classes.head}>
        <h2 className={classes.name}>{words.title}</h2>
      </header>
      <div className={classes.body}>
        <SchemaForm
          schema={SCHEMA}
          value={note as unknown as Json}
          readOnly={isReadOnly}
          onChange={(value, change) =>
            // A note without a text is still a note.
            edit(value, change.path[0] === "text" ? { ...change, value: change.value ?? "" } : change)
          }
        />
        {!isReadOnly && (
          <Button
            variant="default"
            leftSection={<IconTrash size={14} />}
            onClick={() => {
              actions.edit(words.remove, (edited) => removeNote(edited, id));
              actions.select([]);
            }}
          >
            {words.remove}
          </Button>
        )}
      </div>
    </>
  );
}
