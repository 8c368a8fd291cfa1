import { Anchor, Badge, Button, Group, Table } from "@mantine/core";
import { api, dataOf } from "../../api/client";
import type { components } from "../../api/schema";
import { ConfirmButton, tellDone, useAction } from "../../app/actions";
import { Time } from "../../app/ListPage";
import { useMay } from "../../app/session";
import { texts } from "../../texts";
import { formatBytes } from "../../values/format";
import classes from "../ops.module.css";

type Package = components["schemas"]["Package"];
type Version = components["schemas"]["PackageVersion"];

const words = texts.operations.packages;

export function PackageVersions({ one }: { readonly one: Package }) {
  return (
    <Table verticalSpacing={4}>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>{texts.columns.version}</Table.Th>
          <Table.Th>{words.publishedAt}</Table.Th>
          <Table.Th>{texts.columns.by}</Table.Th>
          <Table.Th>{words.signedBy}</Table.Th>
          <Table.Th>{words.size}</Table.Th>
          <Table.Th aria-label={texts.operations.actions} />
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {one.versions.map((version) => (
          <VersionRow key={version.version} version={version} />
        ))}
      </Table.Tbody>
    </Table>
  );
}

function VersionRow({ version }: { readonly version: Version }) {
  const params = { path: { name: version.name, version: version.version } };
  const isYanked = version.yankedAt != null;
  return (
    <Table.Tr>
      <Table.Td>
        <Group gap={6}>
          <Anchor
            className={classes.mono}
            href={`/api/v1/packages/${params.path.name}/${params.path.version}/archive`}
            title={words.download}
            download
          >
            {version.version}
          </Anchor>
          {version.active && <Badge size="xs">{words.active}</Badge>}
          {isYanked && (
            <Badge size="xs" color="red" title={version.yankedReason}>
              {words.yanked}
            </Badge>
          )}
        </Group>
      </Table.Td>
      <Table.Td>
        <Time at={version.publishedAt} />
      </Table.Td>
      <Table.Td>{version.publishedBy}</Table.Td>
      <Table.Td>{version.signedBy ?? <span className={classes.dim}>{words.unsigned}</span>}</Table.Td>
      <Table.Td>{formatBytes(version.sizeBytes)}</Table.Td>
      <Table.Td>
        <VersionActions version={version} />
      </Table.Td>
    </Table.Tr>
  );
}

function VersionActions({ version }: { readonly version: Version }) {
  const mayOperate = useMay("operate");
  const params = { path: { name: version.name, version: version.version } };
  const changes = ["packages", "rollouts"];
  const activate = useAction({
    run: async () =>
      dataOf(
        await api.PUT("/api/v1/packages/{name}/active", {
          params: { path: { name: version.name } },
          body: { version: version.version },
        }),
      ),
    changes,
    failed: words.activateFailed,
    done: () => tellDone(words.activated(version.name, version.version)),
  });
  const yank = useAction({
    run: async () =>
      dataOf(await api.POST("/api/v1/packages/{name}/{version}/yank", { params, body: { reason: "" } })),
    changes,
    failed: words.yankFailed,
  });
  const unyank = useAction({
    run: async () => dataOf(await api.POST("/api/v1/packages/{name}/{version}/unyank", { params })),
    changes,
    failed: words.yankFailed,
  });
  if (!mayOperate) return null;
  const label = `${version.name} ${version.version}`;
  return (
    <Group gap={4} wrap="nowrap" justify="flex-end">
      {!version.active && version.yankedAt == null && (
        <Button
          size="compact-xs"
          variant="default"
          aria-label={words.activateOne(label)}
          loading={activate.isPending}
          onClick={() => activate.mutate()}
        >
          {words.activate}
        </Button>
      )}
      {version.yankedAt == null ? (
        <ConfirmButton
          size="compact-xs"
          label={words.yank}
          title={words.yankTitle(label)}
          body={words.yankBody}
          loading={yank.isPending}
          onConfirm={() => yank.mutate()}
        />
      ) : (
        <Button
          size="compact-xs"
          variant="default"
          loading={unyank.isPending}
          onClick={() => unyank.mutate()}
        >
          {words.unyank}
        </Button>
      )}
    </Group>
  );
}
