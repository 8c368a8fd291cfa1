import { Alert, Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { texts } from "../texts";
import { deleteWorkflow } from "./requests";
import { messageOf } from "./running";

interface Props {
  readonly id: string;
  readonly name: string;
  readonly onClose: () => void;
  readonly onDone: () => Promise<unknown>;
}

const words = texts.editor.remove;

export function ConfirmDelete({ id, name, onClose, onDone }: Props) {
  const [problem, setProblem] = useState<string | null>(null);
  const remove = async (): Promise<void> => {
    try {
      await deleteWorkflow(id);
      await onDone();
    } catch (error) {
      setProblem(messageOf(error));
    }
  };
  return (
    <Modal opened onClose={onClose} title={words.title(name)}>
      <Stack gap="sm">
        <Text size="sm">{words.text}</Text>
        {problem !== null && (
          <Alert color="red" role="alert">
            {problem}
          </Alert>
        )}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" data-autofocus onClick={onClose}>
            {words.cancel}
          </Button>
          <Button color="red" onClick={() => void remove()}>
            {words.confirm}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
