import { useEditor } from "../stores/editor";
import { texts } from "../texts";
import { formatClock } from "../values/format";
import type { SaveState } from "./draftKeeper";
import classes from "./editor.module.css";
import { useSession, useUi } from "./session";

const words = texts.editor.toolbar;

function wordsFor(save: SaveState, isNew: boolean): string {
  switch (save.kind) {
    case "clean":
      return isNew ? words.neverSaved : words.save.clean;
    case "saved":
      return words.save.saved(formatClock(save.at).slice(0, 5));
    default:
      return words.save[save.kind];
  }
}

/** Draft or version, and whether what was edited is saved. */
export function SaveStateText() {
  const session = useSession();
  const save = useUi((state) => state.save);
  const isReadOnly = useEditor((state) => state.isReadOnly);
  const keeper = session.keeper();
  const version = keeper?.version ?? 0;
  const isDraft = (keeper?.revision ?? 0) > 0 || save.kind !== "clean";
  const parts = isReadOnly
    ? []
    : [
        ...(isDraft ? [words.draft] : []),
        ...(version > 0 ? [words.version(version)] : []),
        wordsFor(save, version === 0 && !isDraft),
      ];
  return (
    <output className={classes.saveState} data-state={save.kind}>
      {parts.join(" · ")}
    </output>
  );
}
