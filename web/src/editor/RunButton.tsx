import { Button, Menu, Tooltip } from "@mantine/core";
import { IconChevronDown, IconPlayerPlayFilled } from "@tabler/icons-react";
import { useLive } from "../live/live";
import { useEditor } from "../stores/editor";
import { texts } from "../texts";
import { isMac, wordsOf } from "./chords";
import classes from "./editor.module.css";
import { declaredInputs, run, runBlock, runToHere } from "./running";
import { chosen } from "./selection";
import { useSession, useUi } from "./session";

const words = texts.editor;

/** Run, with the reason where it cannot be; more ways in the menu. */
export function RunButton() {
  const session = useSession();
  const errors = useUi((state) => state.problems.filter((one) => one.severity === "error").length);
  const isStarting = useUi((state) => state.isStarting);
  const isOffline = useLive((live) => live.state.kind === "offline");
  useEditor((state) => state.history.present);
  useEditor((state) => state.selection);
  const blocked = runBlock(session, isOffline, errors);
  const hasInputs = Object.keys(declaredInputs(session)).length > 0;
  const hasNodes = chosen(session).nodes.length > 0;
  const hint = blocked ?? `${words.commands.run} (${wordsOf("Mod+Enter", isMac())})`;
  return (
    <Button.Group>
      <Tooltip label={hint}>
        <Button
          leftSection={<IconPlayerPlayFilled size={12} />}
          loading={isStarting}
          {...(blocked === null ? {} : { "data-disabled": true })}
          aria-disabled={blocked !== null}
          aria-description={blocked ?? undefined}
          onClick={(event) => {
            event.preventDefault();
            // It finds out itself whether something is in the way, and says so.
            void run(session);
          }}
        >
          {words.toolbar.run}
        </Button>
      </Tooltip>
      <Menu position="bottom-end" shadow="md" width={240}>
        <Menu.Target>
          <Button className={classes.runMore} aria-label={words.toolbar.runMenu}>
            <IconChevronDown size={14} />
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item disabled={blocked !== null} onClick={() => void run(session)}>
            {words.commands.run}
          </Menu.Item>
          <Menu.Item disabled={blocked !== null || !hasNodes} onClick={() => void runToHere(session)}>
            {words.commands.runToHere}
          </Menu.Item>
          <Menu.Item
            disabled={blocked !== null || !hasInputs}
            onClick={() => session.ui.setState({ dialog: "run" })}
          >
            {words.commands.runWithInputs}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
    </Button.Group>
  );
}
