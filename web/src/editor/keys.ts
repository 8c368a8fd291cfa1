/** The keyboard of the editor. */

import { useEffect } from "react";
import { offerCommands, type PageCommand } from "../app/pageCommands";
import { usePreferences } from "../app/preferences";
import { texts } from "../texts";
import { copyChosen, deleteChosen, pasteText } from "./changing";
import { chordOf, isMac, isSingle, wordsOf } from "./chords";
import { rememberCopy } from "./clipboardAccess";
import { COMMANDS, commandFor, isAvailable } from "./commands";
import type { EditorSession } from "./session";

export const usesSingleKeys = (): boolean => usePreferences.getState().hasLetterKeys;
export function setSingleKeys(hasLetterKeys: boolean): void {
  usePreferences.setState({ hasLetterKeys });
}

/** Whether somebody types there, or something in front of the page has the keyboard. */
function isTaken(target: EventTarget | null): boolean {
  if (!(target instanceof Element)) return false;
  return (
    target.closest(
      "input, textarea, select, [contenteditable='true'], .cm-editor, [role='dialog'], [role='menu'], [role='listbox']",
    ) !== null
  );
}

/** Keys that a button or a link uses itself. */
const OF_BUTTONS = new Set(["Enter", "Space", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"]);
const isButton = (target: EventTarget | null): boolean =>
  target instanceof Element &&
  target.closest("button, a[href], summary, [role='tab'], [role='separator']") !== null;

function onKeyDown(event: KeyboardEvent, session: EditorSession): void {
  const chord = chordOf(event);
  // The browser would save the page.
  if (chord === "Mod+S") event.preventDefault();
  if (event.defaultPrevented && chord !== "Mod+S") return;
  if (isTaken(event.target) && chord !== "Mod+S" && chord !== "Mod+Enter") return;
  if (isSingle(chord) && !usesSingleKeys()) return;
  if (OF_BUTTONS.has(chord) && isButton(event.target)) return;
  const command = commandFor(chord, session);
  if (command === null || command.isNative) return;
  event.preventDefault();
  command.run(session);
}

/** Copy, cut and paste by the events of the browser, which bring the clipboard with them. */
function onClipboard(event: ClipboardEvent, session: EditorSession): void {
  if (isTaken(event.target) || !document.getSelection()?.isCollapsed) return;
  if (event.type === "paste") {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (pasteText(session, text)) event.preventDefault();
    return;
  }
  const text = copyChosen(session);
  if (text === null) return;
  event.clipboardData?.setData("text/plain", text);
  rememberCopy(text);
  event.preventDefault();
  if (event.type === "cut") deleteChosen(session, false);
}

/** Keys that are pressed again and again: nobody looks for them by name. */
const MOTION = /^(walk|nudge)-/;

/** The commands that are there just now, for the palette. */
function forPalette(session: EditorSession): readonly PageCommand[] {
  return COMMANDS.filter((command) => !MOTION.test(command.id) && isAvailable(command, session)).map(
    (command) => ({
      id: command.id,
      label: command.label,
      keys: command.keys[0] === undefined ? "" : wordsOf(command.keys[0], isMac()),
      run: () => command.run(session),
    }),
  );
}

export function useKeys(session: EditorSession): void {
  useEffect(() => offerCommands(texts.editor.toolbar.label, () => forPalette(session)), [session]);
  useEffect(() => {
    const stop = new AbortController();
    const { signal } = stop;
    document.addEventListener("keydown", (event) => onKeyDown(event, session), { signal });
    for (const name of ["copy", "cut", "paste"] as const)
      document.addEventListener(name, (event) => onClipboard(event, session), { signal });
    return () => stop.abort();
  }, [session]);
}
