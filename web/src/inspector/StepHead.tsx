import { ActionIcon, CopyButton, Menu, TextInput, UnstyledButton } from "@mantine/core";
import { IconChevronDown, IconCopy, IconDots, IconEye, IconEyeOff, IconTrash } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, dataOf } from "../api/client";
import { iconOf } from "../canvas/icons";
import { hostOf } from "../forms/expressions/names";
import { useDraft } from "../forms/useDraft";
import type { NodeDefinition } from "../model/definition";
import { removeNodes, renameNode, setDisabled, setField } from "../model/edits/nodes";
import { useDocument, useEditorStore } from "../stores/editor";
import { texts } from "../texts";
import { useInspector } from "./context";
import classes from "./inspector.module.css";
import { StepLink } from "./StepPorts";
import type { FoundType } from "./useNodeType";

const words = texts.forms.head;
const NEUTRAL = "#6b7280";

interface HeadProps {
  readonly node: NodeDefinition;
  readonly found: FoundType;
}

/** What the step is called, which type of which package it is, and what can be done with it. */
export function StepHead({ node, found: { type, miss } }: HeadProps) {
  const { isReadOnly } = useInspector();
  const { actions } = useEditorStore();
  const document = useDocument();
  const host = hostOf(document, node.id);
  const Icon = iconOf(type?.icon);
  const draft = useDraft(node.label ?? "", false, (label) =>
    actions.edit(words.rename, (document) => renameNode(document, node.id, label)),
  );
  const name = type?.label ?? node.type;
  return (
    <header className={classes.head}>
      <span className={classes.tile} style={{ background: type?.color ?? NEUTRAL }} aria-hidden="true">
        <Icon size={18} stroke={1.75} />
      </span>
      <div className={classes.headText}>
        {isReadOnly ? (
          <h2 className={classes.name}>{node.label ?? name}</h2>
        ) : (
          <TextInput
            size="xs"
            variant="unstyled"
            classNames={{ input: classes.nameInput ?? "" }}
            aria-label={words.label}
            value={draft.value}
            placeholder={name}
            onChange={(event) => draft.change(event.currentTarget.value)}
            onBlur={draft.flush}
            onKeyDown={(event) => {
              if (event.key === "Enter") event.currentTarget.blur();
            }}
          />
        )}
        <div className={classes.typeLine}>
          <span title={node.type}>{name}</span>
          <VersionMenu node={node} version={type?.package.version} packageName={type?.package.name} />
        </div>
        {host !== undefined && (
          <div className={classes.typeLine}>
            {words.around} <StepLink id={host.id} />
          </div>
        )}
        {miss !== undefined && (
          <div className={classes.miss}>{words.miss[miss](node.type, node.package?.name ?? "")}</div>
        )}
      </div>
      {!isReadOnly && <StepMenu node={node} />}
    </header>
  );
}

function StepMenu({ node }: { readonly node: NodeDefinition }) {
  const { actions } = useEditorStore();
  const isDisabled = node.disabled === true;
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size={28} aria-label={words.menu}>
          <IconDots size={16} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item
          leftSection={isDisabled ? <IconEye size={14} /> : <IconEyeOff size={14} />}
          onClick={() =>
            actions.edit(isDisabled ? words.enable : words.disable, (document) =>
              setDisabled(document, [node.id], !isDisabled),
            )
          }
        >
          {isDisabled ? words.enable : words.disable}
        </Menu.Item>
        <CopyButton value={node.id}>
          {({ copy }) => (
            <Menu.Item leftSection={<IconCopy size={14} />} onClick={copy}>
              {words.copyId}
            </Menu.Item>
          )}
        </CopyButton>
        <Menu.Divider />
        <Menu.Item
          color="red"
          leftSection={<IconTrash size={14} />}
          onClick={() => {
            actions.edit(words.remove, (document) => removeNodes(document, [node.id]));
            actions.select([]);
          }}
        >
          {words.remove}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

interface VersionProps {
  readonly node: NodeDefinition;
  readonly packageName: string | undefined;
  readonly version: string | undefined;
}

/** The version of the package: a certain one, or whichever is the newest when a run starts. */
function VersionMenu({ node, packageName, version }: VersionProps) {
  const { isReadOnly } = useInspector();
  const { actions } = useEditorStore();
  const [isOpen, setOpen] = useState(false);
  const name = node.package?.name ?? packageName;
  const chosen = node.package?.version ?? undefined;
  const versions = useQuery({
    queryKey: ["packages", name, "versions"],
    queryFn: async () =>
      dataOf(
        await api.GET("/api/v1/packages/{name}", { params: { path: { name: name ?? "" } } }),
      ).versions.map((one) => one.version),
    enabled: isOpen && name !== undefined,
    retry: false,
  });
  if (name === undefined) return null;
  const shown = `${name} ${chosen ?? version ?? ""}`;
  if (isReadOnly) return <span className={classes.version}>{shown}</span>;
  const choose = (next: string | undefined): void =>
    actions.edit(words.version, (document) => {
      const named = setField(document, node.id, ["package", "name"], name);
      return setField(named, node.id, ["package", "version"], next);
    });
  const listed = [...new Set([...(versions.data ?? []), ...(chosen === undefined ? [] : [chosen])])];
  return (
    <Menu opened={isOpen} onChange={setOpen} withinPortal>
      <Menu.Target>
        <UnstyledButton className={classes.version} aria-label={words.chooseVersion(shown)}>
          {shown}
          <IconChevronDown size={12} />
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{words.versionHelp}</Menu.Label>
        <Menu.Item onClick={() => choose(undefined)} aria-checked={chosen === undefined}>
          {words.newest(version ?? "")}
        </Menu.Item>
        {listed.map((one) => (
          <Menu.Item key={one} onClick={() => choose(one)} aria-checked={chosen === one}>
            {chosen === one ? words.chosen(one) : one}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
