import { Button, NumberInput, Progress, Select, Table, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, dataOf } from "../../api/client";
import type { components } from "../../api/schema";
import { tellDone, useAction } from "../../app/actions";
import { Time } from "../../app/ListPage";
import { Panel } from "../../app/PanelStates";
import { texts } from "../../texts";
import { FormDialog } from "../FormDialog";
import classes from "../ops.module.css";
import { StateDot, type Tone } from "../parts";

type Package = components["schemas"]["Package"];
type Rollout = components["schemas"]["Rollout"];

const words = texts.operations.packages;
/** As the command line has it. */
const MAX_FAILED_PERCENT = 10;
const TONES: Record<Rollout["state"], Tone> = {
  running: "busy",
  succeeded: "good",
  failed: "bad",
  rolled_back: "warn",
};

/** The rollouts of a package, newest first. */
export function PackageRollouts({ name }: { readonly name: string }) {
  const query = useQuery({
    queryKey: ["rollouts", name],
    queryFn: async () =>
      dataOf(await api.GET("/api/v1/packages/{name}/rollout", { params: { path: { name } } })).items,
  });
  return (
    <Panel query={query}>
      {(rollouts) =>
        rollouts.length === 0 ? (
          <span className={classes.dim}>{words.noRollouts}</span>
        ) : (
          <Table verticalSpacing={4}>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>{texts.columns.status}</Table.Th>
                <Table.Th>{texts.columns.version}</Table.Th>
                <Table.Th>{words.wave}</Table.Th>
                <Table.Th>{texts.columns.started}</Table.Th>
                <Table.Th>{texts.columns.by}</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {rollouts.map((rollout) => (
                <RolloutRow key={rollout.rolloutId} rollout={rollout} />
              ))}
            </Table.Tbody>
          </Table>
        )
      }
    </Panel>
  );
}

function RolloutRow({ rollout }: { readonly rollout: Rollout }) {
  const share = rollout.state === "succeeded" ? 100 : (rollout.waves[rollout.wave] ?? 0);
  return (
    <Table.Tr>
      <Table.Td>
        <StateDot tone={TONES[rollout.state]}>{words.rolloutState[rollout.state]}</StateDot>
        {rollout.error !== "" && <div className={classes.error}>{rollout.error}</div>}
      </Table.Td>
      <Table.Td className={classes.mono}>
        {rollout.previous == null ? rollout.version : `${rollout.previous} → ${rollout.version}`}
      </Table.Td>
      <Table.Td>
        <span className={classes.meter}>
          <Progress value={share} w={72} size="sm" aria-label={words.wave} />
          {words.waveOf(rollout.wave + 1, rollout.waves.length)}
        </span>
      </Table.Td>
      <Table.Td>
        <Time at={rollout.startedAt} />
      </Table.Td>
      <Table.Td>{rollout.startedBy}</Table.Td>
    </Table.Tr>
  );
}

/** Percentages as people write them: `10, 50, 100`. */
export function readWaves(text: string): number[] | null {
  const parts = text.split(/[\s,]+/).filter((part) => part !== "");
  const waves = parts.map(Number);
  const isRising = waves.every((wave, place) => place === 0 || wave > (waves[place - 1] ?? 0));
  const isFine = waves.every((wave) => Number.isInteger(wave) && wave > 0 && wave <= 100);
  return waves.length > 0 && isRising && isFine && waves.at(-1) === 100 ? waves : null;
}

export function RolloutForm({ one }: { readonly one: Package }) {
  const [isOpen, dialog] = useDisclosure(false);
  const open = one.versions.filter((version) => version.yankedAt == null && !version.active);
  const [version, setVersion] = useState<string | null>(null);
  const [waves, setWaves] = useState("10, 50, 100");
  const [soak, setSoak] = useState<string | number>(60);
  const chosen = version ?? open[0]?.version ?? null;
  const shares = readWaves(waves);
  const start = useAction({
    run: async () =>
      dataOf(
        await api.POST("/api/v1/packages/{name}/rollout", {
          params: { path: { name: one.name } },
          body: {
            version: chosen ?? "",
            waves: shares ?? [100],
            soakSeconds: Number(soak) || 0,
            maxFailedPercent: MAX_FAILED_PERCENT,
          },
        }),
      ),
    changes: ["packages", "rollouts"],
    failed: words.rolloutFailed,
    done: (rollout) => {
      dialog.close();
      tellDone(words.rolloutStarted(rollout.name, rollout.version));
    },
  });
  return (
    <>
      <Button variant="default" onClick={dialog.open} disabled={open.length === 0}>
        {words.rollOut}
      </Button>
      <FormDialog
        isOpen={isOpen}
        onClose={dialog.close}
        title={words.rolloutTitle(one.name)}
        submitLabel={words.rollOut}
        isReady={shares !== null && chosen !== null}
        isPending={start.isPending}
        onSubmit={() => start.mutate()}
      >
        <Select
          label={texts.columns.version}
          data={open.map((each) => each.version)}
          value={chosen}
          allowDeselect={false}
          onChange={setVersion}
        />
        <TextInput
          label={words.waves}
          description={words.wavesHint}
          value={waves}
          error={shares === null ? words.wavesWrong : undefined}
          onChange={(event) => setWaves(event.currentTarget.value)}
        />
        <NumberInput
          size="xs"
          label={words.soak}
          description={words.soakHint}
          min={0}
          value={soak}
          onChange={setSoak}
        />
      </FormDialog>
    </>
  );
}
