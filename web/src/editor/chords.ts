/** Keys by their names, as `Mod+Shift+Z`; Mod is ⌘ on a Mac and Ctrl elsewhere. */

export interface KeyPress {
  readonly key: string;
  readonly code: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly altKey: boolean;
  readonly shiftKey: boolean;
}

const LETTER = /^Key([A-Z])$/;

/** What was pressed. Shift is told of letters and named keys; of `?` and `+` it is a part. */
export function chordOf(press: KeyPress): string {
  const letter = press.key.length === 1 && /[a-z]/i.test(press.key) ? press.key.toUpperCase() : null;
  // With Alt a Mac gives another character for the same key.
  const name = press.altKey ? (LETTER.exec(press.code)?.[1] ?? letter ?? press.key) : (letter ?? press.key);
  const isSign = name.length === 1 && !/[A-Z]/.test(name);
  const parts = [
    ...(press.ctrlKey || press.metaKey ? ["Mod"] : []),
    ...(press.altKey ? ["Alt"] : []),
    ...(press.shiftKey && !isSign ? ["Shift"] : []),
    name === " " ? "Space" : name,
  ];
  return parts.join("+");
}

/** Whether it is one key without a modifier: such are off in inputs, and can be switched off at all. */
export const isSingle = (chord: string): boolean => [...chord].length === 1;

const NAMES: Readonly<Record<string, string>> = {
  ArrowLeft: "←",
  ArrowRight: "→",
  ArrowUp: "↑",
  ArrowDown: "↓",
  Delete: "Del",
  Escape: "Esc",
  "-": "−",
};

/** A chord as people read it. */
export function wordsOf(chord: string, isMac: boolean): string {
  return chord
    .split(/\+(?=.)/)
    .map((part) => (part === "Mod" ? (isMac ? "⌘" : "Ctrl") : (NAMES[part] ?? part)))
    .join(" ");
}

export const isMac = (): boolean => /Mac|iPhone|iPad/.test(navigator.userAgent);
