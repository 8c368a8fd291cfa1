import { Button, Menu } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import type { ReactNode } from "react";
import classes from "./inspector.module.css";

interface Props {
  readonly label: string;
  /** The kinds of things that can be added, as items of a menu. */
  readonly children: ReactNode;
}

/** Adds one of several kinds of things to a list. */
export function AddMenu({ label, children }: Props) {
  return (
    <Menu withinPortal position="bottom-start">
      <Menu.Target>
        <Button
          className={classes.add}
          variant="default"
          size="compact-xs"
          leftSection={<IconPlus size={12} />}
        >
          {label}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>{children}</Menu.Dropdown>
    </Menu>
  );
}
