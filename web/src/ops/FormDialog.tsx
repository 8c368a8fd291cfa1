import { Button, Group, Modal } from "@mantine/core";
import type { ReactNode } from "react";
import { texts } from "../texts";
import classes from "./ops.module.css";

interface Props {
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly title: string;
  readonly submitLabel: string;
  readonly isReady: boolean;
  readonly isPending: boolean;
  readonly onSubmit: () => void;
  /** The fields. */
  readonly children: ReactNode;
}

/** A form in a dialog, with a way out. It stays open until what was asked for is done, so that nothing typed is lost. */
export function FormDialog(props: Props) {
  return (
    <Modal opened={props.isOpen} onClose={props.onClose} title={props.title}>
      <form
        className={classes.form}
        onSubmit={(event) => {
          event.preventDefault();
          props.onSubmit();
        }}
      >
        {props.children}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={props.onClose}>
            {texts.cancel}
          </Button>
          <Button type="submit" loading={props.isPending} disabled={!props.isReady}>
            {props.submitLabel}
          </Button>
        </Group>
      </form>
    </Modal>
  );
}
