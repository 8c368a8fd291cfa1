import { Badge, Group, Tabs, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client";
import type { components } from "../../api/schema";
import { ConfirmButton, tellDone, useAction } from "../../app/actions";
import { Panel } from "../../app/PanelStates";
import { useMay } from "../../app/session";
import { texts } from "../../texts";
import { plainOf } from "../../values/plainText";
import classes from "../ops.module.css";
import { PackageInstalls } from "./PackageInstalls";
import { PackageNodes } from "./PackageNodes";
import { PackageRollouts, RolloutForm } from "./PackageRollouts";
import { PackageUses } from "./PackageUses";
import { PackageVersions } from "./PackageVersions";

type Package = components["schemas"]["Package"];

const words = texts.operations.packages;

/** One package: its steps, its versions, where it is installed, what brings a version to the workers, and what uses it. */
export function PackagePanel({ name }: { readonly name: string }) {
  const query = useQuery({
    queryKey: ["packages", "one", name],
    queryFn: async () => dataOf(await api.GET("/api/v1/packages/{name}", { params: { path: { name } } })),
  });
  return (
    <Panel query={query}>
      {(one) => (
        <section aria-label={name}>
          <Head one={one} />
          <Tabs defaultValue="steps" mt="sm" keepMounted={false}>
            <Tabs.List>
              <Tabs.Tab value="steps">{words.steps(one.nodes)}</Tabs.Tab>
              <Tabs.Tab value="versions">{words.versions(one.versions.length)}</Tabs.Tab>
              <Tabs.Tab value="workers">{words.workers}</Tabs.Tab>
              <Tabs.Tab value="rollouts">{words.rollouts}</Tabs.Tab>
              <Tabs.Tab value="used">{words.used}</Tabs.Tab>
            </Tabs.List>
            <Tabs.Panel value="steps" pt="sm">
              {one.active == null ? (
                <span className={classes.dim}>{words.noActiveHint}</span>
              ) : (
                <PackageNodes name={name} version={one.active} />
              )}
            </Tabs.Panel>
            <Tabs.Panel value="versions" pt="sm">
              <PackageVersions one={one} />
            </Tabs.Panel>
            <Tabs.Panel value="workers" pt="sm">
              <PackageInstalls one={one} />
            </Tabs.Panel>
            <Tabs.Panel value="rollouts" pt="sm">
              <PackageRollouts name={name} />
            </Tabs.Panel>
            <Tabs.Panel value="used" pt="sm">
              <PackageUses key={name} name={name} />
            </Tabs.Panel>
          </Tabs>
        </section>
      )}
    </Panel>
  );
}

/** A package that is part of the installation: it has steps, and nothing to manage. */
export function BuiltInPanel({ name }: { readonly name: string }) {
  return (
    <section aria-label={name}>
      <Title order={2}>{name}</Title>
      <p className={classes.dim}>{words.builtIn}</p>
      <PackageNodes name={name} version="" />
      <Title order={3} mt="md">
        {words.used}
      </Title>
      <PackageUses key={name} name={name} />
    </section>
  );
}

function Head({ one }: { readonly one: Package }) {
  const mayOperate = useMay("operate");
  const rollback = useAction({
    run: async () =>
      dataOf(await api.POST("/api/v1/packages/{name}/rollback", { params: { path: { name: one.name } } })),
    changes: ["packages", "rollouts"],
    failed: words.rollbackFailed,
    done: (now) => tellDone(words.rolledBack(now.name, now.version)),
  });
  const published = one.versions.filter((version) => version.yankedAt == null);
  return (
    <>
      <Group gap="xs">
        <Title order={2}>{one.name}</Title>
        {one.active != null && <span className={classes.mono}>{one.active}</span>}
        {one.pinned && <Badge variant="default">{words.pinned}</Badge>}
        {mayOperate && published.length > 1 && (
          <Group gap="xs" ml="auto">
            <RolloutForm one={one} />
            <ConfirmButton
              label={words.rollback}
              title={words.rollbackTitle(one.name)}
              body={words.rollbackBody}
              loading={rollback.isPending}
              onConfirm={() => rollback.mutate()}
            />
          </Group>
        )}
      </Group>
      <p className={classes.dim}>{plainOf(one.description)}</p>
    </>
  );
}
