import { ActionIcon, Modal, Tooltip } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconArrowsDiagonal } from "@tabler/icons-react";
import { CodeEditor, type CodeEditorProps } from "../../code/CodeEditor";
import { texts } from "../../texts";
import classes from "../forms.module.css";

/** A code editor with a button that opens it in a dialog: the inspector is narrow. */
export function LargeEditor(props: CodeEditorProps) {
  const [isOpen, dialog] = useDisclosure(false);
  const words = texts.forms.openLarge(props.label);
  return (
    <div className={classes.editor}>
      <CodeEditor {...props} />
      <Tooltip label={words}>
        <ActionIcon
          className={classes.enlarge}
          size={20}
          variant="default"
          aria-label={words}
          onClick={dialog.open}
        >
          <IconArrowsDiagonal size={12} />
        </ActionIcon>
      </Tooltip>
      <Modal opened={isOpen} onClose={dialog.close} title={props.label} size="70rem">
        <CodeEditor {...props} minLines={24} maxLines={30} hasLineNumbers hasFocus />
      </Modal>
    </div>
  );
}
