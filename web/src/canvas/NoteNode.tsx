import { type NodeProps, NodeResizer } from "@xyflow/react";
import { type CSSProperties, memo, Suspense, useState } from "react";
import { lazyChunk } from "../app/chunks";
import { texts } from "../texts";
import { Colors } from "./Colors";
import classes from "./canvas.module.css";
import { useDecor } from "./decor";
import type { NoteFlowNode } from "./flow";

const Markdown = lazyChunk(() => import("./Markdown"));

/** A colour that is no name: some of it, so that the text can be read on it. */
function tinted(color: string | undefined): CSSProperties | undefined {
  if (!color?.startsWith("#")) return undefined;
  return { background: `color-mix(in srgb, ${color} 22%, var(--surface-card))`, color: "inherit" };
}

/** A text on the canvas. A double click edits it. */
export const NoteNode = memo(function NoteNode({ id, data, selected }: NodeProps<NoteFlowNode>) {
  const { note } = data;
  const actions = useDecor((decor) => decor.actions);
  const isNaming = useDecor((decor) => decor.naming === id);
  return (
    <>
      {actions !== null && (
        <NodeResizer
          isVisible={selected}
          minWidth={120}
          minHeight={48}
          onResizeEnd={(_, { x, y, width, height }) => actions.resizeNote(id, { x, y, width, height })}
        />
      )}
      {actions !== null && selected && (
        <Colors
          color={note.color ?? "yellow"}
          label={texts.canvas.noteColor}
          onColor={(color) => actions.colorNote(id, color)}
        />
      )}
      <div
        className={classes.note}
        data-selected={selected || undefined}
        data-color={note.color}
        style={tinted(note.color)}
      >
        {isNaming ? (
          <NoteField id={id} text={note.text} />
        ) : note.text === "" ? (
          <em>{texts.canvas.emptyNote}</em>
        ) : (
          <Suspense fallback={note.text}>
            <Markdown text={note.text} />
          </Suspense>
        )}
      </div>
    </>
  );
});

function NoteField({ id, text }: { readonly id: string; readonly text: string }) {
  const actions = useDecor((decor) => decor.actions);
  const [value, setValue] = useState(text);
  return (
    <textarea
      className={`${classes.noteField} nodrag nopan nowheel`}
      aria-label={texts.canvas.noteText}
      placeholder={texts.canvas.notePlaceholder}
      value={value}
      ref={focused}
      onChange={(event) => setValue(event.target.value)}
      onBlur={() => actions?.writeNote(id, value)}
      onKeyDown={(event) => {
        event.stopPropagation();
        if (event.key === "Escape" || (event.key === "Enter" && (event.ctrlKey || event.metaKey)))
          event.currentTarget.blur();
      }}
    />
  );
}

const focused = (field: HTMLTextAreaElement | null): void => field?.focus();
