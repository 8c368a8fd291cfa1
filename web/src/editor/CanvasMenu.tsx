import { Menu } from "@mantine/core";
import { texts } from "../texts";
import { isMac, wordsOf } from "./chords";
import { COMMANDS, isAvailable } from "./commands";
import classes from "./editor.module.css";
import { pinItems } from "./pins";
import { useSession, useUi } from "./session";

/** The menu of a right click: what can be done with what is selected. */
export function CanvasMenu() {
  const session = useSession();
  const at = useUi((state) => state.menu);
  if (at === null) return null;
  const close = (): void => session.ui.setState({ menu: null });
  const commands = COMMANDS.filter((command) => command.inMenu && isAvailable(command, session));
  const pins = pinItems(session);
  return (
    <Menu
      opened
      onClose={close}
      position="bottom-start"
      middlewares={{ flip: true, shift: { crossAxis: true, padding: 8 } }}
      shadow="md"
      width={240}
      withinPortal
      returnFocus
    >
      <Menu.Target>
        <button
          type="button"
          className={classes.menuPoint}
          style={{ left: at.x, top: at.y }}
          aria-label={texts.editor.toolbar.menu}
          tabIndex={-1}
        />
      </Menu.Target>
      <Menu.Dropdown>
        {commands.map((command) => (
          <Menu.Item
            key={command.id}
            rightSection={
              command.keys[0] === undefined ? null : (
                <span className={classes.menuKey}>{wordsOf(command.keys[0], isMac())}</span>
              )
            }
            onClick={() => command.run(session)}
          >
            {command.label}
          </Menu.Item>
        ))}
        {pins.length > 0 && <Menu.Divider />}
        {pins.map((item) => (
          <Menu.Item key={item.label} onClick={item.run}>
            {item.label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
