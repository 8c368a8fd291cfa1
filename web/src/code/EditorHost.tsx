import {
  acceptCompletion,
  autocompletion,
  type CompletionContext,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
  startCompletion,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { setDiagnostics } from "@codemirror/lint";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  keymap,
  lineNumbers,
  placeholder as placeholderText,
} from "@codemirror/view";
import { useEffect, useRef } from "react";
import { takeNonce } from "../app/nonce";
import type { CodeEditorProps } from "./CodeEditor";
import classes from "./code.module.css";
import { languageNamed, loadLanguage } from "./languages";
import { codeColours, codeTheme } from "./theme";

const LINE = 18;
const PADDING = 10;
const KINDS = { name: "variable", function: "function", keyword: "keyword", property: "property" } as const;

type Latest = { current: CodeEditorProps };

/** CodeMirror in React: the view is made once; what changes is handed to it. */
export default function EditorHost(props: CodeEditorProps) {
  const { value, language, isReadOnly = false, label, id, describedBy, marks, isInvalid = false } = props;
  const { placeholder } = props;
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const parts = useRef({
    language: new Compartment(),
    attributes: new Compartment(),
    fixed: new Compartment(),
  });

  useEffect(() => {
    const { attributes, fixed, language: coloured } = parts.current;
    const made = new EditorView({
      parent: place.current as HTMLDivElement,
      state: EditorState.create({
        doc: latest.current.value,
        extensions: [...basics(latest), coloured.of([]), attributes.of([]), fixed.of([])],
      }),
    });
    view.current = made;
    if (latest.current.hasFocus) {
      made.focus();
      made.dispatch({ selection: { anchor: made.state.doc.length } });
    }
    return () => {
      view.current = null;
      made.destroy();
    };
  }, []);

  useEffect(() => {
    const made = view.current;
    if (made === null || made.state.doc.toString() === value) return;
    made.dispatch({ changes: { from: 0, to: made.state.doc.length, insert: value } });
  }, [value]);

  useEffect(() => {
    view.current?.dispatch({
      effects: parts.current.fixed.reconfigure([
        EditorState.readOnly.of(isReadOnly),
        placeholder === undefined ? [] : placeholderText(placeholder),
      ]),
    });
  }, [isReadOnly, placeholder]);

  useEffect(() => {
    const attributes = {
      "aria-label": label,
      tabindex: "0",
      ...(id === undefined ? {} : { id }),
      ...(describedBy === undefined ? {} : { "aria-describedby": describedBy }),
      ...(isInvalid ? { "aria-invalid": "true" } : {}),
      ...(isReadOnly ? { "aria-readonly": "true" } : {}),
    };
    const effects = parts.current.attributes.reconfigure(EditorView.contentAttributes.of(attributes));
    view.current?.dispatch({ effects });
  }, [label, id, describedBy, isInvalid, isReadOnly]);

  useEffect(() => {
    const named = languageNamed(language);
    let isWanted = true;
    const use = (extension: Extension): void => {
      if (isWanted) view.current?.dispatch({ effects: parts.current.language.reconfigure(extension) });
    };
    if (named === undefined) use([]);
    else void loadLanguage(named).then(use);
    return () => {
      isWanted = false;
    };
  }, [language]);

  useEffect(() => {
    const made = view.current;
    if (made === null) return;
    const end = made.state.doc.length;
    const found = (marks ?? []).map((mark) => ({
      from: Math.min(mark.from, end),
      to: Math.min(Math.max(mark.to, mark.from), end),
      severity: mark.severity ?? ("error" as const),
      message: mark.message,
    }));
    made.dispatch(setDiagnostics(made.state, found));
  }, [marks]);

  return (
    <div
      ref={place}
      className={classes.host}
      data-invalid={isInvalid || undefined}
      data-fills={props.fills || undefined}
    />
  );
}

function basics(latest: Latest): Extension[] {
  const { isSingleLine = false, minLines = 1, maxLines = 18, fills = false, hasLineNumbers } = latest.current;
  const size = EditorView.theme(
    fills
      ? { "&": { height: "100%" } }
      : {
          ".cm-scroller": { maxHeight: `${maxLines * LINE + PADDING}px` },
          ".cm-content, .cm-gutter": { minHeight: `${minLines * LINE + PADDING - 2}px` },
        },
  );
  return [
    EditorView.cspNonce.of(takeNonce()),
    codeTheme,
    size,
    syntaxHighlighting(codeColours),
    history(),
    drawSelection(),
    bracketMatching(),
    closeBrackets(),
    indentUnit.of("  "),
    // Lines of a program keep their shape; a value is read more easily without scrolling.
    hasLineNumbers ? [lineNumbers(), highlightActiveLine()] : EditorView.lineWrapping,
    isSingleLine ? singleLine() : [indentOnInput(), keymap.of([indentWithTab])],
    completing(latest),
    keymap.of([...closeBracketsKeymap, ...completionKeymap, ...defaultKeymap, ...historyKeymap]),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) latest.current.onChange?.(update.state.doc.toString());
    }),
    EditorView.domEventHandlers({ blur: () => latest.current.onBlur?.() }),
  ];
}

/** Enter ends the entry, a pasted line end becomes a space, and Tab goes to the next field. */
function singleLine(): Extension {
  return [
    keymap.of([
      {
        key: "Enter",
        run: (view) => {
          if (acceptCompletion(view)) return true;
          view.contentDOM.blur();
          view.contentDOM.focus();
          return true;
        },
      },
    ]),
    EditorState.transactionFilter.of((change) =>
      change.newDoc.lines > 1
        ? [
            change,
            {
              changes: {
                from: 0,
                to: change.newDoc.length,
                insert: change.newDoc.toString().replaceAll("\n", " "),
              },
              sequential: true,
            },
          ]
        : change,
    ),
  ];
}

function completing(latest: Latest): Extension {
  const source = (context: CompletionContext) => {
    const before = context.state.sliceDoc(0, context.pos);
    const found = latest.current.complete?.(before) ?? null;
    if (found === null || (!context.explicit && context.pos === found.from && !before.endsWith(".")))
      return null;
    return {
      from: found.from,
      options: found.options.map((one) => ({
        label: one.label,
        type: KINDS[one.kind],
        boost: one.rank ?? 0,
        ...(one.insert === undefined ? {} : { apply: one.insert }),
        ...(one.detail === undefined ? {} : { detail: one.detail }),
        ...(one.info === undefined ? {} : { info: one.info }),
      })),
      validFor: /^\w*$/,
    };
  };
  return [
    autocompletion({ override: [source], icons: false, activateOnTyping: true }),
    keymap.of([{ key: "Ctrl-Space", run: startCompletion }]),
  ];
}
