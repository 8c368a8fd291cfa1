import { Switch, Title } from "@mantine/core";
import { IconClockPlay } from "@tabler/icons-react";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { api, dataOf } from "../../api/client";
import type { components } from "../../api/schema";
import { useAction } from "../../app/actions";
import { type Column, Rows, Time } from "../../app/ListPage";
import { Empty, Panel } from "../../app/PanelStates";
import { useMay } from "../../app/session";
import { texts } from "../../texts";
import { shortId } from "../../values/format";
import classes from "../ops.module.css";
import { More, usePages } from "../pages";
import { TriggerDrawer } from "./TriggerDrawer";
import { useWorkflowNames } from "./workflowNames";

export type Trigger = components["schemas"]["Trigger"];

const words = texts.operations.triggers;

/** What a trigger fires at, in a few words. */
function conditionOf(trigger: Trigger): string {
  const settings = trigger.settings as Record<string, unknown>;
  switch (trigger.type) {
    case "cron":
      return `${settings.expression} (${settings.timeZone ?? "UTC"})`;
    case "webhook":
      return words.webhookOf(((settings.methods as string[] | undefined) ?? ["POST"]).join(", "));
    case "workflow":
      return words.afterOf(((settings.on as string[] | undefined) ?? ["succeeded"]).join(", "));
    case "manual":
      return words.byHand;
  }
}

/** The expression of a schedule is code; all else is said in words. */
export function Condition({ trigger }: { readonly trigger: Trigger }) {
  const text = conditionOf(trigger);
  return trigger.type === "cron" ? <code>{text}</code> : text;
}

function EnabledSwitch({ trigger }: { readonly trigger: Trigger }) {
  const mayEdit = useMay("edit");
  const params = { path: { id: trigger.workflowId, triggerId: trigger.id } };
  const turn = useAction<boolean>({
    run: async (isOn) =>
      dataOf(
        isOn
          ? await api.POST("/api/v1/workflows/{id}/triggers/{triggerId}/enable", { params })
          : await api.POST("/api/v1/workflows/{id}/triggers/{triggerId}/disable", { params }),
      ),
    changes: ["triggers"],
    failed: words.switchFailed,
  });
  return (
    <Switch
      size="xs"
      checked={trigger.enabled}
      disabled={!mayEdit || turn.isPending}
      aria-label={words.enabledOf(trigger.id)}
      onClick={(event) => event.stopPropagation()}
      onChange={(event) => turn.mutate(event.currentTarget.checked)}
    />
  );
}

/** The schedules, webhooks and other triggers of all workflows. */
export function TriggersPage() {
  const search = useSearch({ from: "/triggers" });
  const navigate = useNavigate({ from: "/triggers" });
  const query = usePages<Trigger>(["triggers", "list"], async (cursor) =>
    dataOf(
      await api.GET("/api/v1/triggers", { params: { query: { limit: 200, ...(cursor ? { cursor } : {}) } } }),
    ),
  );
  const names = useWorkflowNames();
  const open = (row: Trigger): void =>
    void navigate({ search: { workflow: row.workflowId, trigger: row.id } });
  const columns: Column<Trigger>[] = [
    { label: words.enabled, cell: (row) => <EnabledSwitch trigger={row} /> },
    {
      label: words.trigger,
      cell: (row) => (
        <button type="button" className={classes.link} onClick={() => open(row)}>
          {row.id}
        </button>
      ),
    },
    { label: words.type, cell: (row) => words.types[row.type] },
    { label: words.firesAt, cell: (row) => <Condition trigger={row} /> },
    {
      label: texts.columns.workflow,
      cell: (row) => names.get(row.workflowId) ?? shortId(row.workflowId),
    },
    { label: words.next, cell: (row) => <Time at={row.enabled ? row.nextTimes?.[0] : null} /> },
  ];
  const chosen = query.data?.find((row) => row.workflowId === search.workflow && row.id === search.trigger);
  return (
    <div className={classes.page}>
      <div className={classes.head}>
        <Title order={1}>{words.title}</Title>
      </div>
      <Panel query={query}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty icon={IconClockPlay} title={words.empty} hint={words.hint}>
              <Link to="/workflows">{texts.notFound.back}</Link>
            </Empty>
          ) : (
            <Rows
              columns={columns}
              rows={rows}
              keyOf={(row) => `${row.workflowId} ${row.id}`}
              onOpen={open}
            />
          )
        }
      </Panel>
      <More query={query} />
      <TriggerDrawer
        trigger={chosen ?? null}
        workflowName={chosen === undefined ? "" : (names.get(chosen.workflowId) ?? "")}
        onClose={() => void navigate({ search: {} })}
      />
    </div>
  );
}
