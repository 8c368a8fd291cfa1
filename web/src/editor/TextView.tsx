import { Button } from "@mantine/core";
import { IconAlertTriangle, IconBraces, IconSitemap } from "@tabler/icons-react";
import { useEffect, useMemo } from "react";
import { CodeEditor } from "../code/CodeEditor";
import { useDraft } from "../forms/useDraft";
import { isDrawable } from "../model/document";
import { useDocument, useEditor } from "../stores/editor";
import { texts } from "../texts";
import { lineOf, readText, shownText, type TextMark, writeText } from "./asText";
import classes from "./editor.module.css";
import type { FoundProblem } from "./problemPlaces";
import { useSession, useUi } from "./session";

const words = texts.editor.asText;
/** More are marked in the text alone. */
const SHOWN = 5;
const NONE: readonly FoundProblem[] = [];

/** What was typed and is not JSON is saved nowhere: the browser asks before it is lost. */
function useAskBeforeLeaving(isUnsaved: boolean): void {
  useEffect(() => {
    if (!isUnsaved) return;
    const ask = (event: BeforeUnloadEvent): void => event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, [isUnsaved]);
}

/** The workflow as JSON: to edit, with what is wrong marked at its place. */
export function TextView() {
  const session = useSession();
  const document = useDocument();
  const isReadOnly = useEditor((state) => state.isReadOnly);
  const found = useUi((state) => state.problems);
  const saved = useMemo(() => shownText(document), [document]);
  const draft = useDraft(saved, false, (text) => void writeText(session, text));
  const isTyped = draft.value !== saved;
  const read = useMemo(
    // Problems were found in what is saved: they say nothing about what is being typed.
    () => readText(draft.value, isTyped ? NONE : found),
    [draft.value, isTyped, found],
  );
  useAskBeforeLeaving(read.document === null);
  const canDraw = isDrawable(document) && read.document !== null;
  return (
    <section className={classes.textView} aria-label={words.label}>
      <div className={classes.textHead} data-kind={read.problem === null ? undefined : "warning"}>
        {read.problem === null ? <IconBraces size={16} /> : <IconAlertTriangle size={16} />}
        <span role="status" className={classes.textHint}>
          {read.problem ?? words.hint}
        </span>
        {canDraw && (
          <Button
            size="compact-sm"
            variant="default"
            leftSection={<IconSitemap size={14} />}
            onClick={() => {
              draft.flush();
              session.ui.setState({ asText: false });
            }}
          >
            {words.draw}
          </Button>
        )}
      </div>
      {/* The head tells of the first one that keeps the text from being saved or drawn. */}
      <MarkList text={draft.value} marks={read.problem === null ? read.marks : read.marks.slice(1)} />
      <div className={classes.textBody}>
        <CodeEditor
          value={draft.value}
          onChange={(text) => {
            if (text !== draft.value) draft.change(text);
          }}
          onBlur={draft.flush}
          label={words.label}
          language="json"
          isReadOnly={isReadOnly}
          marks={read.marks}
          isInvalid={read.problem !== null}
          hasLineNumbers
          fills
        />
      </div>
    </section>
  );
}

/** What is marked in the text, for those who do not see the marks. */
function MarkList({ text, marks }: { readonly text: string; readonly marks: readonly TextMark[] }) {
  if (marks.length === 0) return null;
  return (
    <ul className={classes.textMarks} aria-label={texts.editor.dock.problems}>
      {marks.slice(0, SHOWN).map((mark) => (
        <li key={`${mark.from} ${mark.message}`} data-severity={mark.severity}>
          {words.atLine(lineOf(text, mark.from), mark.message)}
        </li>
      ))}
      {marks.length > SHOWN && <li>{words.more(marks.length - SHOWN)}</li>}
    </ul>
  );
}
