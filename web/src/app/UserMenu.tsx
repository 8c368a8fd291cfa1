import { ActionIcon, Menu } from "@mantine/core";
import { IconUserCircle } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { texts } from "../texts";
import { logOut } from "./logout";
import { useSession } from "./session";

const words = texts.userMenu;

/** Who is logged in, and the way out. */
export function UserMenu() {
  const session = useSession();
  if (session === null) return null;
  return (
    <Menu position="bottom-end" withArrow>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label={words.open(session.subject)}>
          <IconUserCircle size={18} stroke={1.75} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{words.who(session.subject, texts.operations.roles[session.role])}</Menu.Label>
        <Menu.Item renderRoot={(props) => <Link {...props} to="/settings" search={{ tab: "you" }} />}>
          {words.settings}
        </Menu.Item>
        <Menu.Item renderRoot={(props) => <Link {...props} to="/settings" search={{ tab: "shortcuts" }} />}>
          {words.shortcuts}
        </Menu.Item>
        <Menu.Item onClick={() => void logOut()}>{words.logOut}</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
