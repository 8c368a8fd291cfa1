import { Menu } from "@mantine/core";
import {
  type Icon,
  IconLayoutAlignBottom,
  IconLayoutAlignCenter,
  IconLayoutAlignLeft,
  IconLayoutAlignMiddle,
  IconLayoutAlignRight,
  IconLayoutAlignTop,
  IconLayoutDistributeHorizontal,
  IconLayoutDistributeVertical,
} from "@tabler/icons-react";
import { texts } from "../texts";
import { isMac, wordsOf } from "./chords";
import { COMMANDS, type Command, isAvailable } from "./commands";
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
  const arranging = commands.filter((command) => command.inMenu === "row");
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
        {arranging.length > 0 && <ArrangeRow commands={arranging} />}
        {commands
          .filter((command) => command.inMenu !== "row")
          .map((command) => (
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

const ICONS: Readonly<Record<string, Icon>> = {
  "align-left": IconLayoutAlignLeft,
  "align-centre": IconLayoutAlignCenter,
  "align-right": IconLayoutAlignRight,
  "align-top": IconLayoutAlignTop,
  "align-middle": IconLayoutAlignMiddle,
  "align-bottom": IconLayoutAlignBottom,
  "distribute-across": IconLayoutDistributeVertical,
  "distribute-down": IconLayoutDistributeHorizontal,
};

/** Align and distribute, as a row of icons: eight lines of the menu would be too many. */
function ArrangeRow({ commands }: { readonly commands: readonly Command[] }) {
  const session = useSession();
  return (
    <>
      <fieldset className={classes.menuRow} aria-label={texts.editor.commands.arrange}>
        {commands.map((command) => {
          const Sign = ICONS[command.id] ?? IconLayoutAlignLeft;
          const keys = command.keys[0] === undefined ? "" : ` (${wordsOf(command.keys[0], isMac())})`;
          return (
            <Menu.Item
              key={command.id}
              className={classes.menuIcon}
              aria-label={command.label}
              title={`${command.label}${keys}`}
              onClick={() => command.run(session)}
            >
              <Sign size={18} stroke={1.75} />
            </Menu.Item>
          );
        })}
      </fieldset>
      <Menu.Divider />
    </>
  );
}
