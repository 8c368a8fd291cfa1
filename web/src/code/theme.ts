/** The looks of code: colours are variables of ours, so that the theme follows the page. */

import { HighlightStyle } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

export const codeTheme = EditorView.theme({
  "&": {
    fontSize: "12px",
    color: "var(--mantine-color-text)",
    backgroundColor: "var(--code-surface)",
    border: "1px solid var(--code-border)",
    borderRadius: "4px",
  },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-1px", borderColor: "transparent" },
  ".cm-scroller": {
    fontFamily: "var(--mantine-font-family-monospace)",
    lineHeight: "18px",
    fontVariantLigatures: "none",
    overflow: "auto",
  },
  ".cm-content": { padding: "4px 0", caretColor: "var(--accent)" },
  ".cm-line": { padding: "0 8px" },
  ".cm-cursor": { borderLeftColor: "var(--accent)" },
  ".cm-gutters": {
    backgroundColor: "transparent",
    color: "var(--text-dim)",
    borderRight: "1px solid var(--border)",
  },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "transparent" },
  "&.cm-focused .cm-activeLine": { backgroundColor: "var(--code-line)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    background: "var(--code-selection)",
  },
  ".cm-matchingBracket, .cm-nonmatchingBracket": { backgroundColor: "transparent" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--code-selection)", outline: "none" },
  ".cm-placeholder": { color: "var(--text-dim)" },
  ".cm-tooltip": {
    backgroundColor: "var(--surface-card)",
    color: "var(--mantine-color-text)",
    border: "1px solid var(--border)",
    borderRadius: "4px",
    boxShadow: "0 4px 16px rgb(0 0 0 / 20%)",
    fontSize: "12px",
    zIndex: "400",
  },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": {
    fontFamily: "var(--mantine-font-family-monospace)",
    maxHeight: "220px",
  },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "3px 8px" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "#fff" },
  "[data-mantine-color-scheme='dark'] & .cm-tooltip-autocomplete ul li[aria-selected]": { color: "#10131a" },
  ".cm-completionDetail": { opacity: "0.75", fontStyle: "normal" },
  ".cm-completionInfo": { padding: "6px 8px", maxWidth: "260px" },
  ".cm-diagnostic": { fontFamily: "var(--mantine-font-family)", padding: "4px 8px" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--state-failed)" },
});

export const codeColours = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--code-number)" },
  { tag: [tags.comment, tags.meta], color: "var(--code-comment)" },
  { tag: [tags.propertyName, tags.attributeName], color: "var(--code-property)" },
  { tag: [tags.function(tags.variableName), tags.typeName, tags.tagName], color: "var(--code-function)" },
  { tag: tags.heading, fontWeight: "600" },
  { tag: tags.strong, fontWeight: "600" },
  { tag: tags.emphasis, fontStyle: "italic" },
  { tag: tags.link, color: "var(--code-property)", textDecoration: "underline" },
  { tag: tags.invalid, color: "var(--state-failed)" },
]);
