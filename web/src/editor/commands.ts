/** Everything that can be done, once: the keys, the menus, the list of shortcuts and the palette read it from here. */

import { ALIGNMENTS, AXES } from "../model/aligning";
import { texts } from "../texts";
import { addNoteAt } from "./adding";
import { align, boxesOf, distribute, nudge, tidy } from "./arranging";
import { isAsText } from "./asText";
import {
  copyChosen,
  deleteChosen,
  duplicateChosen,
  pasteText,
  selectAll,
  selectReach,
  startNaming,
  toggleDisabled,
  walk,
} from "./changing";
import { readClipboard, writeClipboard } from "./clipboardAccess";
import { DOCK_TABS } from "./dockTabs";
import { groupChosen, groupsOfChosen, ungroupChosen } from "./grouping";
import { run, runToHere, save } from "./running";
import { chosen, chosenStep, chosenSteps } from "./selection";
import { type EditorSession, isReadOnly, notify, openDock } from "./session";

export type CommandGroup = "add" | "edit" | "select" | "run" | "view";

export interface Command {
  readonly id: string;
  readonly label: string;
  readonly group: CommandGroup;
  readonly keys: readonly string[];
  /** It changes the document: not there when it is read-only. */
  readonly isEdit: boolean;
  /** It is in the menu of the canvas; `row`: as one of a row of icons. */
  readonly inMenu?: boolean | "row";
  /** Keys that the browser handles by itself, with an event that the editor listens to. */
  readonly isNative?: boolean;
  readonly when?: (session: EditorSession) => boolean;
  readonly run: (session: EditorSession) => void;
}

const words = texts.editor.commands;
const hasChosen = (session: EditorSession): boolean => session.editor.getState().selection.size > 0;
const hasNodes = (session: EditorSession): boolean => chosen(session).nodes.length > 0;
const hasSteps = (session: EditorSession): boolean => chosenSteps(session).length > 0;
const hasStep = (session: EditorSession): boolean => chosenStep(session) !== null;

export function openQuickAdd(session: EditorSession): void {
  const handle = session.canvas.current;
  const screen = handle?.pointer() ?? handle?.middle() ?? { x: 200, y: 200 };
  const at = handle?.pointer() == null || hasStep(session) ? null : handle.toFlow(screen);
  session.ui.setState({ quickAdd: { screen, at, open: null }, menu: null });
}

async function copy(session: EditorSession, isCut: boolean): Promise<void> {
  const text = copyChosen(session);
  if (text === null) return;
  await writeClipboard(text);
  if (isCut) deleteChosen(session, false);
}

async function paste(session: EditorSession): Promise<void> {
  const text = await readClipboard();
  if (text === null || !pasteText(session, text)) notify(session, texts.editor.notices.nothingToPaste);
}

function note(session: EditorSession): void {
  const handle = session.canvas.current;
  const screen = handle?.pointer() ?? handle?.middle();
  if (handle !== null && handle !== undefined && screen !== undefined)
    addNoteAt(session, handle.toFlow(screen));
}

const edit = { group: "edit", isEdit: true } as const;
const select = { group: "select", isEdit: false } as const;
const view = { group: "view", isEdit: false } as const;

/** As in the keys for games: A and D are beside each other, W and S above. H and V are the two middles. */
const ALIGN_KEYS = { left: "A", right: "D", top: "W", bottom: "S", centre: "H", middle: "V" } as const;

export const COMMANDS: readonly Command[] = [
  {
    id: "add",
    label: words.add,
    group: "add",
    isEdit: true,
    keys: ["N", "/"],
    inMenu: true,
    run: openQuickAdd,
  },
  { id: "note", label: words.note, group: "add", isEdit: true, keys: ["Shift+S"], inMenu: true, run: note },
  {
    id: "connect",
    label: words.connect,
    group: "add",
    isEdit: true,
    keys: ["C"],
    inMenu: true,
    when: hasStep,
    run: (session) => session.ui.setState({ dialog: "connect", menu: null }),
  },
  {
    ...edit,
    id: "rename",
    label: words.rename,
    keys: ["F2"],
    inMenu: true,
    when: hasChosen,
    run: startNaming,
  },
  {
    ...edit,
    id: "disable",
    label: words.disable,
    keys: ["D"],
    inMenu: true,
    when: hasNodes,
    run: toggleDisabled,
  },
  {
    ...edit,
    id: "duplicate",
    label: words.duplicate,
    keys: ["Mod+D"],
    inMenu: true,
    when: hasNodes,
    run: duplicateChosen,
  },
  {
    id: "copy",
    label: words.copy,
    group: "edit",
    isEdit: false,
    keys: ["Mod+C"],
    isNative: true,
    inMenu: true,
    when: hasNodes,
    run: (session) => void copy(session, false),
  },
  {
    ...edit,
    id: "cut",
    label: words.cut,
    keys: ["Mod+X"],
    isNative: true,
    inMenu: true,
    when: hasNodes,
    run: (session) => void copy(session, true),
  },
  {
    ...edit,
    id: "paste",
    label: words.paste,
    keys: ["Mod+V"],
    isNative: true,
    inMenu: true,
    run: (session) => void paste(session),
  },
  {
    ...edit,
    id: "delete",
    label: words.delete,
    keys: ["Delete", "Backspace"],
    inMenu: true,
    when: hasChosen,
    run: (session) => deleteChosen(session, false),
  },
  {
    ...edit,
    id: "delete-heal",
    label: words.deleteAndHeal,
    keys: ["Mod+Delete", "Mod+Backspace"],
    when: hasNodes,
    run: (session) => deleteChosen(session, true),
  },
  {
    ...edit,
    id: "undo",
    label: words.undo,
    keys: ["Mod+Z"],
    run: (session) => session.editor.actions.undo(),
  },
  {
    ...edit,
    id: "redo",
    label: words.redo,
    keys: ["Mod+Shift+Z", "Mod+Y"],
    run: (session) => session.editor.actions.redo(),
  },
  {
    ...edit,
    id: "tidy",
    label: words.tidy,
    keys: ["Alt+Shift+L"],
    inMenu: true,
    run: (session) => void tidy(session),
  },
  {
    ...edit,
    id: "group",
    label: words.group,
    keys: ["Mod+G"],
    inMenu: true,
    when: hasSteps,
    run: groupChosen,
  },
  {
    ...edit,
    id: "ungroup",
    label: words.ungroup,
    keys: ["Mod+Shift+G"],
    inMenu: true,
    when: (session) => groupsOfChosen(session).length > 0,
    run: ungroupChosen,
  },
  ...ALIGNMENTS.map((to) => ({
    ...edit,
    id: `align-${to}`,
    label: words.align[to],
    keys: [`Alt+Shift+${ALIGN_KEYS[to]}`],
    inMenu: "row" as const,
    when: (session: EditorSession) => boxesOf(session).length > 1,
    run: (session: EditorSession) => align(session, to),
  })),
  ...AXES.map((axis) => ({
    ...edit,
    id: `distribute-${axis}`,
    label: words.distribute[axis],
    keys: [`Alt+Shift+${axis === "across" ? "X" : "Y"}`],
    inMenu: "row" as const,
    when: (session: EditorSession) => boxesOf(session).length > 2,
    run: (session: EditorSession) => distribute(session, axis),
  })),
  ...(["left", "right", "up", "down"] as const).map((way) => ({
    ...edit,
    id: `nudge-${way}`,
    label: words.nudge[way],
    keys: [`Alt+Shift+${arrowOf(way)}`],
    when: (session: EditorSession) => hasSteps(session) || chosen(session).notes.length > 0,
    run: (session: EditorSession) => nudge(session, way),
  })),
  ...(["left", "right", "up", "down"] as const).map((way) => ({
    ...select,
    id: `walk-${way}`,
    label: words.walk[way],
    keys: [arrowOf(way)],
    run: (session: EditorSession) => walk(session, way),
  })),
  {
    ...select,
    id: "upstream",
    label: words.upstream,
    keys: ["Shift+ArrowLeft"],
    when: hasNodes,
    run: (session) => selectReach(session, "upstream"),
  },
  {
    ...select,
    id: "downstream",
    label: words.downstream,
    keys: ["Shift+ArrowRight"],
    when: hasNodes,
    run: (session) => selectReach(session, "downstream"),
  },
  { ...select, id: "all", label: words.selectAll, keys: ["Mod+A"], run: selectAll },
  {
    ...select,
    id: "none",
    label: words.clear,
    keys: ["Escape"],
    run: (session) => session.editor.actions.select([]),
  },
  { ...select, id: "inspect", label: words.inspect, keys: ["Enter"], when: hasStep, run: openInspector },
  {
    id: "run",
    label: words.run,
    group: "run",
    isEdit: false,
    keys: ["Mod+Enter"],
    run: (session) => void run(session),
  },
  {
    id: "run-to",
    label: words.runToHere,
    group: "run",
    isEdit: false,
    keys: ["Mod+Shift+Enter"],
    inMenu: true,
    when: hasNodes,
    run: (session) => void runToHere(session),
  },
  {
    id: "save",
    label: words.save,
    group: "run",
    isEdit: true,
    keys: ["Mod+S"],
    run: (session) => void saveNow(session),
  },
  {
    ...view,
    id: "zoom-in",
    label: words.zoomIn,
    keys: ["+"],
    run: (session) => session.canvas.current?.zoomIn(),
  },
  {
    ...view,
    id: "zoom-out",
    label: words.zoomOut,
    keys: ["-"],
    run: (session) => session.canvas.current?.zoomOut(),
  },
  {
    ...view,
    id: "zoom-full",
    label: words.zoomFull,
    keys: ["0"],
    run: (session) => session.canvas.current?.zoomToFull(),
  },
  {
    ...view,
    id: "fit",
    label: words.fit,
    keys: ["1"],
    inMenu: true,
    run: (session) => session.canvas.current?.fit(),
  },
  ...DOCK_TABS.flatMap((tab) =>
    tab.key === null
      ? []
      : [
          {
            ...view,
            id: `dock-${tab.id}`,
            label: texts.editor.dock.open(tab.label),
            keys: [tab.key],
            run: (session: EditorSession) => openDock(session, tab.id),
          },
        ],
  ),
  {
    ...view,
    id: "as-text",
    label: texts.editor.asText.open,
    keys: ["Alt+Shift+J"],
    run: (session) => session.ui.setState(({ asText }) => ({ asText: !asText, menu: null })),
  },
  {
    ...view,
    id: "shortcuts",
    label: words.shortcuts,
    keys: ["?"],
    run: (session) => session.ui.setState({ dialog: "shortcuts" }),
  },
];

function arrowOf(way: "left" | "right" | "up" | "down"): string {
  return { left: "ArrowLeft", right: "ArrowRight", up: "ArrowUp", down: "ArrowDown" }[way];
}

async function saveNow(session: EditorSession): Promise<void> {
  await save(session);
  const { save: state } = session.ui.getState();
  if (state.kind === "saved" || state.kind === "clean") notify(session, texts.editor.notices.saved);
}

function openInspector(session: EditorSession): void {
  session.ui.setState({ field: "" });
}

/** What is there beside the canvas, too: the rest needs it. */
const BESIDE = new Set(["undo", "redo", "run", "save", "as-text", "shortcuts"]);

/** Whether a command is there just now. */
export function isAvailable(command: Command, session: EditorSession): boolean {
  if (!BESIDE.has(command.id) && isAsText(session)) return false;
  if (command.isEdit && isReadOnly(session)) return false;
  return command.when?.(session) ?? true;
}

/** The two key maps: that of a document that is read-only lacks what would change it. */
function keyMap(isReadOnlyMap: boolean): ReadonlyMap<string, Command> {
  const map = new Map<string, Command>();
  for (const command of COMMANDS) {
    if (isReadOnlyMap && command.isEdit) continue;
    for (const key of command.keys) map.set(key, command);
  }
  return map;
}

const EDIT_KEYS = keyMap(false);
const READ_KEYS = keyMap(true);

export function commandFor(chord: string, session: EditorSession): Command | null {
  const command = (isReadOnly(session) ? READ_KEYS : EDIT_KEYS).get(chord) ?? null;
  return command !== null && isAvailable(command, session) ? command : null;
}
