/** Actions that change something on the server: their progress, their errors, and a question before those that destroy. */

import { Button, type ButtonProps, Group, Modal, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { notifications } from "@mantine/notifications";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { ApiError } from "../api/client";
import { texts } from "../texts";

/** Say that something could not be done, and why. */
export function tellError(title: string, error: unknown): void {
  const request = error instanceof ApiError && error.requestId !== null ? error.requestId : null;
  const message = error instanceof Error ? error.message : String(error);
  notifications.show({
    title,
    message: request === null ? message : `${message} (${texts.failed.request(request)})`,
    color: "red",
    autoClose: 10_000,
  });
}

export function tellDone(message: string): void {
  notifications.show({ message, color: "teal", autoClose: 4_000 });
}

interface ActionOptions<Input, Output> {
  readonly run: (input: Input) => Promise<Output>;
  /** The first keys of the queries whose answer is another one now. */
  readonly changes: readonly string[];
  /** The title of the message when it fails. */
  readonly failed: string;
  readonly done?: (output: Output, input: Input) => void;
}

export function useAction<Input = void, Output = unknown>(options: ActionOptions<Input, Output>) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: options.run,
    onSuccess: async (output, input) => {
      await Promise.all(options.changes.map((key) => queries.invalidateQueries({ queryKey: [key] })));
      options.done?.(output, input);
    },
    onError: (error) => tellError(options.failed, error),
  });
}

interface ConfirmProps extends ButtonProps {
  readonly label: string;
  readonly title: string;
  readonly body: ReactNode;
  readonly onConfirm: () => void;
}

/** A button that asks before it acts. The answer that destroys nothing has the focus. */
export function ConfirmButton({ label, title, body, onConfirm, ...rest }: ConfirmProps) {
  const [isOpen, dialog] = useDisclosure(false);
  return (
    <>
      <Button variant="default" {...rest} onClick={dialog.open}>
        {label}
      </Button>
      <Modal opened={isOpen} onClose={dialog.close} title={title} size="sm">
        <Text size="sm" component="div">
          {body}
        </Text>
        <Group justify="flex-end" mt="md" gap="xs">
          <Button variant="default" onClick={dialog.close} data-autofocus>
            {texts.cancel}
          </Button>
          <Button
            color="red"
            onClick={() => {
              dialog.close();
              onConfirm();
            }}
          >
            {label}
          </Button>
        </Group>
      </Modal>
    </>
  );
}
