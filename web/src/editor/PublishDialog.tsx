import { Alert, Button, Group, Modal, Stack, Text, Textarea } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ApiError } from "../api/client";
import { texts } from "../texts";
import { tick } from "../tour/tour";
import { publishDraft } from "./requests";
import { messageOf, save } from "./running";
import { notify, useSession } from "./session";

const words = texts.editor.publish;

/** Make the draft a version, with a note. */
export function PublishDialog({ onClose }: { readonly onClose: () => void }) {
  const session = useSession();
  const queries = useQueryClient();
  const [note, setNote] = useState("");
  const [isBusy, setIsBusy] = useState(false);
  const [problem, setProblem] = useState<{ text: string; isStale: boolean } | null>(null);
  const publish = async (isForced: boolean): Promise<void> => {
    const keeper = session.keeper();
    if (keeper === null) return;
    setIsBusy(true);
    try {
      await save(session);
      const version = await keeper.publish((revision) =>
        publishDraft(session.workflowId, revision, note.trim(), isForced),
      );
      await queries.invalidateQueries({ queryKey: ["workflows"] });
      notify(session, texts.editor.notices.published(version));
      tick("save");
      onClose();
    } catch (error) {
      setProblem({ text: messageOf(error), isStale: error instanceof ApiError && error.status === 409 });
    } finally {
      setIsBusy(false);
    }
  };
  return (
    <Modal opened onClose={onClose} title={words.title}>
      <Stack gap="sm">
        <Text size="sm" c="dimmed">
          {words.hint}
        </Text>
        <Textarea
          size="xs"
          data-autofocus
          autosize
          minRows={3}
          maxLength={1000}
          label={words.note}
          value={note}
          onChange={(event) => setNote(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void publish(false);
          }}
        />
        {problem !== null && (
          <Alert color="red" role="alert">
            {problem.isStale ? words.conflict : problem.text}
          </Alert>
        )}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            {words.cancel}
          </Button>
          {problem?.isStale && (
            <Button color="red" loading={isBusy} onClick={() => void publish(true)}>
              {words.force}
            </Button>
          )}
          <Button loading={isBusy} onClick={() => void publish(false)}>
            {words.submit}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
