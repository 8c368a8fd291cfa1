import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useMemo, useState } from "react";
import { SchemaForm } from "../forms/SchemaForm";
import { flushFields } from "../forms/useDraft";
import type { Json, JsonFields } from "../model/json/tree";
import { texts } from "../texts";
import { inputSchema, usualInputs } from "./inputs";
import { declaredInputs, run } from "./running";
import { useSession } from "./session";

const words = texts.editor.run;

/** The values of the declared inputs, in the fields that their schemas ask for. */
export default function RunDialog({ onClose }: { readonly onClose: () => void }) {
  const session = useSession();
  const declared = declaredInputs(session);
  const schema = useMemo(() => inputSchema(declared), [declared]);
  const [value, setValue] = useState<Json>(() => usualInputs(declared));
  const hasInputs = Object.keys(declared).length > 0;
  const submit = async (): Promise<void> => {
    flushFields();
    await run(session, value as JsonFields);
  };
  return (
    <Modal opened onClose={onClose} title={words.title}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <Stack gap="sm">
          {hasInputs ? (
            <SchemaForm schema={schema} value={value} onChange={setValue} isLive />
          ) : (
            <Text size="sm">{words.noInputs}</Text>
          )}
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={onClose}>
              {texts.editor.publish.cancel}
            </Button>
            <Button type="submit">{words.submit}</Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
