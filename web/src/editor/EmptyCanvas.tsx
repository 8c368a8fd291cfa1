import { Kbd } from "@mantine/core";
import { IconFileImport, IconPlus, IconTemplate } from "@tabler/icons-react";
import { nodesOf, notesOf } from "../model/document";
import { useDocument, useEditor } from "../stores/editor";
import { texts } from "../texts";
import { openQuickAdd } from "./commands";
import classes from "./editor.module.css";
import { chooseFile, importFile } from "./files";
import { useSession } from "./session";

const words = texts.editor.empty;

/** What an empty canvas shows: how to begin. */
export function EmptyCanvas() {
  const session = useSession();
  const document = useDocument();
  const isReadOnly = useEditor((state) => state.isReadOnly);
  if (isReadOnly || nodesOf(document).length + notesOf(document).length > 0) return null;
  const importJson = async (): Promise<void> => {
    const file = await chooseFile();
    if (file !== null) await importFile(session, file);
  };
  return (
    <div className={classes.empty}>
      <button type="button" className={classes.ghost} onClick={() => openQuickAdd(session)}>
        <IconPlus size={18} stroke={1.75} />
        {words.title}
        <Kbd size="xs">{words.key}</Kbd>
      </button>
      <div className={classes.emptyMore}>
        <button type="button" onClick={() => session.ui.setState({ dialog: "examples" })}>
          <IconTemplate size={16} stroke={1.75} />
          {words.example}
        </button>
        <button type="button" onClick={() => void importJson()}>
          <IconFileImport size={16} stroke={1.75} />
          {words.import}
        </button>
      </div>
    </div>
  );
}
