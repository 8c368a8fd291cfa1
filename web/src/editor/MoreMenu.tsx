import { ActionIcon, Menu } from "@mantine/core";
import { IconDots } from "@tabler/icons-react";
import { useNavigate } from "@tanstack/react-router";
import { isDrawable, textOf } from "../model/document";
import { useEditor } from "../stores/editor";
import { texts } from "../texts";
import { newId } from "./adding";
import { copyOf } from "./copies";
import { chooseFile, downloadDocument, importFile } from "./files";
import { createDraft } from "./requests";
import { messageOf } from "./running";
import { documentOf, notify, useSession, useUi } from "./session";

const words = texts.editor.toolbar;

/** What is done seldom, and with all of the workflow. */
export function MoreMenu() {
  const session = useSession();
  const navigate = useNavigate();
  const isReadOnly = useEditor((state) => state.isReadOnly);
  const isDrawn = useEditor((state) => isDrawable(state.history.present));
  const asText = useUi((state) => state.asText);
  const duplicate = async (): Promise<void> => {
    try {
      const id = await createDraft(copyOf(textOf(documentOf(session)), newId));
      await navigate({ to: "/workflows/$workflowId", params: { workflowId: id }, search: {} });
    } catch (error) {
      notify(session, messageOf(error), "error");
    }
  };
  const importSteps = async (): Promise<void> => {
    const file = await chooseFile();
    if (file !== null) await importFile(session, file);
  };
  const copyJson = async (): Promise<void> => {
    await navigator.clipboard?.writeText(textOf(documentOf(session)));
    notify(session, texts.copied);
  };
  const open = (dialog: "versions" | "delete" | "shortcuts") => (): void => session.ui.setState({ dialog });
  return (
    <Menu position="bottom-end" shadow="md" width={220}>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label={words.menu}>
          <IconDots size={16} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={open("versions")}>{words.versions}</Menu.Item>
        {isDrawn && (
          <Menu.Item onClick={() => session.ui.setState({ asText: !asText })}>
            {asText ? texts.editor.asText.draw : texts.editor.asText.open}
          </Menu.Item>
        )}
        <Menu.Divider />
        <Menu.Item onClick={() => downloadDocument(documentOf(session))}>{words.exportFile}</Menu.Item>
        <Menu.Item onClick={() => void copyJson()}>{words.exportCopy}</Menu.Item>
        {!isReadOnly && <Menu.Item onClick={() => void importSteps()}>{words.importFile}</Menu.Item>}
        {session.mayEdit && <Menu.Item onClick={() => void duplicate()}>{words.duplicate}</Menu.Item>}
        <Menu.Divider />
        <Menu.Item onClick={open("shortcuts")}>{words.shortcuts}</Menu.Item>
        {session.mayEdit && (
          <Menu.Item c="var(--state-failed)" onClick={open("delete")}>
            {words.delete}
          </Menu.Item>
        )}
      </Menu.Dropdown>
    </Menu>
  );
}
