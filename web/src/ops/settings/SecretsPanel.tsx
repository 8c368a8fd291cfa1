import { Button, Group, PasswordInput, Table, TagsInput, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconKey } from "@tabler/icons-react";
import { useState } from "react";
import { api, dataOf } from "../../api/client";
import type { components } from "../../api/schema";
import { ConfirmButton, tellDone, useAction } from "../../app/actions";
import { Time } from "../../app/ListPage";
import { Empty, Panel } from "../../app/PanelStates";
import { useMay } from "../../app/session";
import { texts } from "../../texts";
import { FormDialog } from "../FormDialog";
import classes from "../ops.module.css";
import { More, usePages } from "../pages";

type Secret = components["schemas"]["StoredSecret"];

const words = texts.operations.secrets;

/** The secrets of the tenant. A value is written and never shown. */
export function SecretsPanel() {
  const mayEdit = useMay("admin");
  const query = usePages<Secret>(["secrets"], async (cursor) =>
    dataOf(
      await api.GET("/api/v1/secrets", { params: { query: { limit: 200, ...(cursor ? { cursor } : {}) } } }),
    ),
  );
  return (
    <>
      {mayEdit && (query.data?.length ?? 0) > 0 && <SecretForm label={words.add} />}
      <Panel query={query}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty icon={IconKey} title={words.empty} hint={words.hint}>
              {mayEdit && <SecretForm label={words.add} />}
            </Empty>
          ) : (
            <Table verticalSpacing={4} mt="xs">
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>{texts.columns.name}</Table.Th>
                  <Table.Th>{words.usedBy}</Table.Th>
                  <Table.Th>{texts.columns.changed}</Table.Th>
                  <Table.Th>{texts.columns.by}</Table.Th>
                  <Table.Th aria-label={texts.operations.actions} />
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {rows.map((row) => (
                  <SecretRow key={row.name} secret={row} mayEdit={mayEdit} />
                ))}
              </Table.Tbody>
            </Table>
          )
        }
      </Panel>
      <More query={query} />
    </>
  );
}

function SecretRow({ secret, mayEdit }: { readonly secret: Secret; readonly mayEdit: boolean }) {
  const remove = useAction({
    run: async () => api.DELETE("/api/v1/secrets/{name}", { params: { path: { name: secret.name } } }),
    changes: ["secrets"],
    failed: words.removeFailed,
  });
  return (
    <Table.Tr>
      <Table.Td className={classes.mono}>{secret.name}</Table.Td>
      <Table.Td>{secret.packages.length === 0 ? words.allPackages : secret.packages.join(", ")}</Table.Td>
      <Table.Td>
        <Time at={secret.updatedAt} />
      </Table.Td>
      <Table.Td>{secret.updatedBy}</Table.Td>
      <Table.Td>
        {mayEdit && (
          <Group gap={4} justify="flex-end" wrap="nowrap">
            <SecretForm label={words.replace} secret={secret} />
            <ConfirmButton
              size="compact-xs"
              label={words.remove}
              title={words.removeTitle(secret.name)}
              body={words.removeBody}
              loading={remove.isPending}
              onConfirm={() => remove.mutate()}
            />
          </Group>
        )}
      </Table.Td>
    </Table.Tr>
  );
}

function SecretForm({ label, secret }: { readonly label: string; readonly secret?: Secret }) {
  const [isOpen, dialog] = useDisclosure(false);
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const [packages, setPackages] = useState<string[]>([...(secret?.packages ?? [])]);
  const chosen = secret?.name ?? name;
  const close = (): void => {
    dialog.close();
    setName("");
    setValue("");
  };
  const save = useAction({
    run: async () =>
      dataOf(
        await api.PUT("/api/v1/secrets/{name}", {
          params: { path: { name: chosen } },
          body: { value, packages },
        }),
      ),
    changes: ["secrets"],
    failed: words.saveFailed,
    done: (saved) => {
      close();
      tellDone(words.saved(saved.name));
    },
  });
  return (
    <>
      {secret === undefined ? (
        <Button w="fit-content" onClick={dialog.open}>
          {label}
        </Button>
      ) : (
        <Button size="compact-xs" variant="default" onClick={dialog.open}>
          {label}
        </Button>
      )}
      <FormDialog
        isOpen={isOpen}
        onClose={close}
        title={secret === undefined ? words.add : words.replaceTitle(chosen)}
        submitLabel={words.save}
        isReady={chosen !== "" && value !== ""}
        isPending={save.isPending}
        onSubmit={() => save.mutate()}
      >
        {secret === undefined && (
          <TextInput
            label={texts.columns.name}
            required
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            data-autofocus
          />
        )}
        <PasswordInput
          size="xs"
          label={words.value}
          description={words.valueHint}
          required
          autoComplete="off"
          value={value}
          onChange={(event) => setValue(event.currentTarget.value)}
        />
        <TagsInput
          size="xs"
          label={words.packages}
          description={words.packagesHint}
          value={packages}
          onChange={setPackages}
        />
      </FormDialog>
    </>
  );
}
