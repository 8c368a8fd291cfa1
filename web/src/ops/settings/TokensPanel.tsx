import { Badge, Button, Group, Modal, Select, Switch, Table, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useState } from "react";
import { api, dataOf } from "../../api/client";
import type { components } from "../../api/schema";
import { ConfirmButton, useAction } from "../../app/actions";
import { Time } from "../../app/ListPage";
import { Panel } from "../../app/PanelStates";
import { texts } from "../../texts";
import { FormDialog } from "../FormDialog";
import classes from "../ops.module.css";
import { More, usePages } from "../pages";
import { Ago, CopyIcon } from "../parts";

type Token = components["schemas"]["Token"];
type Role = components["schemas"]["Role"];

const words = texts.operations.tokens;
const ROLES = ["viewer", "editor", "operator", "admin", "worker", "metrics"] as const satisfies Role[];
const LIFETIMES = [
  { value: "43200", label: words.lifetimes.hours12 },
  { value: "2592000", label: words.lifetimes.days30 },
  { value: "31536000", label: words.lifetimes.year },
  { value: "", label: words.lifetimes.none },
] as const;

const isOver = (token: Token): boolean =>
  token.revokedAt != null || (token.expiresAt != null && Date.parse(token.expiresAt) < Date.now());

/** Tokens of programs and workers, and the sessions of browsers. */
export function TokensPanel() {
  const [isAll, setIsAll] = useState(false);
  const query = usePages<Token>(["tokens"], async (cursor) =>
    dataOf(
      await api.GET("/api/v1/tokens", { params: { query: { limit: 200, ...(cursor ? { cursor } : {}) } } }),
    ),
  );
  return (
    <>
      <Group>
        <TokenForm />
        <Switch
          size="xs"
          label={words.showEnded}
          checked={isAll}
          onChange={(event) => setIsAll(event.currentTarget.checked)}
        />
      </Group>
      <Panel query={query}>
        {(rows) => (
          <Table verticalSpacing={4} mt="xs">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>{words.label}</Table.Th>
                <Table.Th>{words.subject}</Table.Th>
                <Table.Th>{texts.session.role}</Table.Th>
                <Table.Th>{words.created}</Table.Th>
                <Table.Th>{words.used}</Table.Th>
                <Table.Th>{words.expires}</Table.Th>
                <Table.Th aria-label={texts.operations.actions} />
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {rows
                .filter((row) => isAll || !isOver(row))
                .map((row) => (
                  <TokenRow key={row.tokenId} token={row} />
                ))}
            </Table.Tbody>
          </Table>
        )}
      </Panel>
      <More query={query} />
    </>
  );
}

function TokenRow({ token }: { readonly token: Token }) {
  const revoke = useAction({
    run: async () => api.DELETE("/api/v1/tokens/{id}", { params: { path: { id: token.tokenId } } }),
    changes: ["tokens"],
    failed: words.revokeFailed,
  });
  return (
    <Table.Tr>
      <Table.Td>
        {token.kind === "session" ? words.browser : token.label === "" ? words.noLabel : token.label}{" "}
        {token.revokedAt != null && (
          <Badge size="xs" color="red">
            {words.revoked}
          </Badge>
        )}
      </Table.Td>
      <Table.Td>{token.subject}</Table.Td>
      <Table.Td>{texts.operations.roles[token.role]}</Table.Td>
      <Table.Td>
        <Time at={token.createdAt} />
      </Table.Td>
      <Table.Td>{token.lastUsedAt == null ? words.never : <Ago at={token.lastUsedAt} />}</Table.Td>
      <Table.Td>{token.expiresAt == null ? words.never : <Time at={token.expiresAt} />}</Table.Td>
      <Table.Td ta="right">
        {!isOver(token) && (
          <ConfirmButton
            size="compact-xs"
            label={words.revoke}
            title={words.revokeTitle}
            body={words.revokeBody}
            loading={revoke.isPending}
            onConfirm={() => revoke.mutate()}
          />
        )}
      </Table.Td>
    </Table.Tr>
  );
}

function TokenForm() {
  const [isOpen, dialog] = useDisclosure(false);
  const [label, setLabel] = useState("");
  const [role, setRole] = useState<string | null>("viewer");
  const [ttl, setTtl] = useState<string | null>("2592000");
  const create = useAction({
    run: async () =>
      dataOf(
        await api.POST("/api/v1/tokens", {
          body: { label, role: role as Role, ttlSeconds: ttl === "" || ttl === null ? null : Number(ttl) },
        }),
      ),
    changes: ["tokens"],
    failed: words.createFailed,
  });
  const close = (): void => {
    dialog.close();
    create.reset();
    setLabel("");
  };
  return (
    <>
      <Button onClick={dialog.open}>{words.create}</Button>
      <FormDialog
        isOpen={isOpen && create.data === undefined}
        onClose={close}
        title={words.create}
        submitLabel={words.create}
        isReady
        isPending={create.isPending}
        onSubmit={() => create.mutate()}
      >
        <TextInput
          label={words.label}
          description={words.labelHint}
          value={label}
          onChange={(event) => setLabel(event.currentTarget.value)}
          data-autofocus
        />
        <Select
          label={texts.session.role}
          data={ROLES.map((one) => ({ value: one, label: texts.operations.roles[one] }))}
          value={role}
          allowDeselect={false}
          onChange={setRole}
        />
        <Select label={words.lifetime} data={LIFETIMES} value={ttl} allowDeselect={false} onChange={setTtl} />
      </FormDialog>
      <Modal opened={create.data !== undefined} onClose={close} title={words.create}>
        {create.data !== undefined && (
          <div className={classes.form}>
            <div>{words.shownOnce}</div>
            <div className={classes.secretValue}>
              <code className={classes.mono}>{create.data.token}</code>
              <CopyIcon text={create.data.token} />
            </div>
            <Button w="fit-content" onClick={close}>
              {words.isCopied}
            </Button>
          </div>
        )}
      </Modal>
    </>
  );
}
