import { Badge, Button, Group, PasswordInput, Select, Table, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useState } from "react";
import { api, dataOf } from "../../api/client";
import type { components } from "../../api/schema";
import { ConfirmButton, tellDone, useAction } from "../../app/actions";
import { Time } from "../../app/ListPage";
import { Panel } from "../../app/PanelStates";
import { useSession } from "../../app/session";
import { texts } from "../../texts";
import { FormDialog } from "../FormDialog";
import classes from "../ops.module.css";
import { More, usePages } from "../pages";

type User = components["schemas"]["User"];
type UserRole = NonNullable<components["schemas"]["UserRequest"]["role"]>;

const words = texts.operations.users;
const ROLES = ["viewer", "editor", "operator", "admin"] as const satisfies UserRole[];
const ROLE_OPTIONS = ROLES.map((one) => ({ value: one, label: texts.operations.roles[one] }));

/** The people of the tenant. */
export function UsersPanel() {
  const session = useSession();
  const query = usePages<User>(["users"], async (cursor) =>
    dataOf(
      await api.GET("/api/v1/users", { params: { query: { limit: 200, ...(cursor ? { cursor } : {}) } } }),
    ),
  );
  return (
    <>
      <UserForm />
      <Panel query={query}>
        {(rows) =>
          rows.length === 0 ? (
            <p className={classes.dim}>{words.empty}</p>
          ) : (
            <Table verticalSpacing={4} mt="xs">
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>{texts.columns.name}</Table.Th>
                  <Table.Th>{texts.session.role}</Table.Th>
                  <Table.Th>{words.created}</Table.Th>
                  <Table.Th aria-label={texts.operations.actions} />
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {rows.map((row) => (
                  <UserRow key={row.name} user={row} isSelf={row.name === session?.subject} />
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

function UserRow({ user, isSelf }: { readonly user: User; readonly isSelf: boolean }) {
  const params = { path: { name: user.name } };
  const change = useAction<components["schemas"]["UserChange"]>({
    run: async (body) => dataOf(await api.PATCH("/api/v1/users/{name}", { params, body })),
    changes: ["users", "tokens"],
    failed: words.changeFailed,
  });
  const remove = useAction({
    run: async () => api.DELETE("/api/v1/users/{name}", { params }),
    changes: ["users", "tokens"],
    failed: words.removeFailed,
  });
  return (
    <Table.Tr>
      <Table.Td>
        {user.name}{" "}
        {user.disabled && (
          <Badge size="xs" variant="default">
            {words.disabled}
          </Badge>
        )}
        {user.issuer !== undefined && user.issuer !== "" && (
          <Badge size="xs" variant="default" title={user.issuer}>
            {words.external}
          </Badge>
        )}
      </Table.Td>
      <Table.Td>
        <Select
          w={140}
          aria-label={words.roleOf(user.name)}
          data={ROLE_OPTIONS}
          value={user.role}
          disabled={isSelf || change.isPending}
          allowDeselect={false}
          onChange={(role) => role !== null && change.mutate({ role: role as UserRole })}
        />
      </Table.Td>
      <Table.Td>
        <Time at={user.createdAt} />
      </Table.Td>
      <Table.Td>
        {!isSelf && (
          <Group gap={4} justify="flex-end" wrap="nowrap">
            <Button
              size="compact-xs"
              variant="default"
              loading={change.isPending}
              onClick={() => change.mutate({ disabled: !user.disabled })}
            >
              {user.disabled ? words.enable : words.disable}
            </Button>
            <ConfirmButton
              size="compact-xs"
              label={words.remove}
              title={words.removeTitle(user.name)}
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

function UserForm() {
  const [isOpen, dialog] = useDisclosure(false);
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [role, setRole] = useState<string | null>("editor");
  const close = (): void => {
    dialog.close();
    setName("");
    setPassword("");
  };
  const create = useAction({
    run: async () =>
      dataOf(await api.POST("/api/v1/users", { body: { name, password, role: role as UserRole } })),
    changes: ["users"],
    failed: words.createFailed,
    done: (user) => {
      close();
      tellDone(words.createdOne(user.name));
    },
  });
  return (
    <>
      <Button onClick={dialog.open}>{words.create}</Button>
      <FormDialog
        isOpen={isOpen}
        onClose={close}
        title={words.create}
        submitLabel={words.create}
        isReady={name !== "" && password !== ""}
        isPending={create.isPending}
        onSubmit={() => create.mutate()}
      >
        <TextInput
          label={texts.columns.name}
          required
          autoComplete="off"
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          data-autofocus
        />
        <PasswordInput
          size="xs"
          label={words.password}
          required
          autoComplete="new-password"
          value={password}
          onChange={(event) => setPassword(event.currentTarget.value)}
        />
        <Select
          label={texts.session.role}
          description={words.roleHint}
          data={ROLE_OPTIONS}
          value={role}
          allowDeselect={false}
          onChange={setRole}
        />
      </FormDialog>
    </>
  );
}
