/** The shortcuts, as they are listed for people. */

import { isMac, wordsOf } from "../editor/chords";
import { COMMANDS, type CommandGroup } from "../editor/commands";
import { texts } from "../texts";

const words = texts.operations.shortcuts;

export interface ShortcutGroup {
  readonly title: string;
  /** Keys, and what they do. */
  readonly rows: readonly (readonly [string, string])[];
}

const EDITOR_GROUPS: readonly CommandGroup[] = ["add", "edit", "select", "run", "view"];

/** Those of the editor, from its table of commands. */
const EDITOR: readonly ShortcutGroup[] = EDITOR_GROUPS.map((group) => ({
  title: words.inEditor(texts.editor.groups[group]),
  rows: COMMANDS.filter((command) => command.group === group).map(
    (command) => [wordsOf(command.keys[0] ?? "", isMac()), command.label] as const,
  ),
}));

export const SHORTCUTS: readonly ShortcutGroup[] = [
  {
    title: words.everywhere,
    rows: [
      ["Ctrl K", words.palette],
      ["?", words.list],
    ],
  },
  {
    title: words.lists,
    rows: [
      ["J K", words.nextRow],
      ["H L", words.nextPage],
      ["Enter", words.openRow],
    ],
  },
  {
    title: words.run,
    rows: [
      ["P", words.pause],
      ["I", words.input],
      ["O", words.output],
      ["T", words.timeline],
      ["L", words.logs],
      ["Esc", words.closeStep],
    ],
  },
  ...EDITOR,
];
