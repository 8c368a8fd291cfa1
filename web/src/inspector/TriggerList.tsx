import { Button, CopyButton, Menu, Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../api/client";
import { isFields } from "../forms/schema";
import { useRowKeys } from "../forms/useRowKeys";
import { isSame } from "../forms/values";
import { appendAt, moveAt, removeAt, setAt, valueAt, type WorkflowDocument } from "../model/document";
import type { Json, JsonFields } from "../model/json/tree";
import { useDocument, useEditorStore } from "../stores/editor";
import { texts } from "../texts";
import { formatDate } from "../values/format";
import { AddMenu } from "./AddMenu";
import { useInspector } from "./context";
import { EntryFold } from "./EntryFold";
import { EntryForm } from "./EntryForm";
import classes from "./inspector.module.css";
import { countBelow } from "./problems";
import { FoldedSection } from "./Section";
import {
  NEW_TRIGGERS,
  SCHEDULES,
  TRIGGER_TYPES,
  type TriggerType,
  triggerId,
  triggerSchema,
} from "./workflowFields";

const words = texts.forms.workflow;

const typeOf = (trigger: JsonFields): TriggerType =>
  TRIGGER_TYPES.find((one) => one === trigger.type) ?? "manual";

/** What starts runs: schedules, webhooks, other workflows. */
export function TriggerList() {
  const document = useDocument();
  const { isReadOnly, problems } = useInspector();
  const { actions } = useEditorStore();
  const listed = valueAt(document, ["triggers"]);
  const triggers = Array.isArray(listed) ? (listed as readonly Json[]) : [];
  const keys = useRowKeys(triggers.length);
  return (
    <FoldedSection
      title={words.triggers}
      places={["/triggers"]}
      help={words.triggersHelp}
      count={triggers.length}
      problems={countBelow(problems, "/triggers")}
    >
      {triggers.map((trigger, place) => {
        const fields = isFields(trigger) ? trigger : {};
        const name = triggerId(triggers, place);
        return (
          <EntryFold
            key={keys.all[place]}
            name={name}
            kind={words.triggerTypes[typeOf(fields)]}
            pointer={`/triggers/${place}`}
            isOpen={triggers.length === 1}
            place={place}
            count={triggers.length}
            onMove={(to) => {
              keys.move(place, to);
              actions.edit(texts.forms.movedEntry(name), (edited) => moveAt(edited, ["triggers"], place, to));
            }}
            onRemove={() => {
              keys.remove(place);
              actions.edit(texts.forms.removedEntry(name), (edited) => withoutTrigger(edited, place));
            }}
          >
            {typeOf(fields) === "cron" && !isReadOnly && <ScheduleHelper place={place} fields={fields} />}
            <SavedTrigger id={name} fields={fields} />
            <EntryForm path={["triggers", place]} schema={triggerSchema(typeOf(fields))} value={trigger} />
          </EntryFold>
        );
      })}
      {!isReadOnly && <AddTrigger />}
    </FoldedSection>
  );
}

function withoutTrigger(document: WorkflowDocument, place: number): WorkflowDocument {
  const edited = removeAt(document, ["triggers", place]);
  return valueAt(edited, ["triggers", 0]) === undefined ? removeAt(edited, ["triggers"]) : edited;
}

function AddTrigger() {
  const { actions } = useEditorStore();
  return (
    <AddMenu label={words.addTrigger}>
      {TRIGGER_TYPES.map((type) => (
        <Menu.Item
          key={type}
          onClick={() =>
            actions.edit(words.addTrigger, (edited) =>
              appendAt(edited, ["triggers"], { value: NEW_TRIGGERS[type] }),
            )
          }
        >
          {words.triggerTypes[type]}
        </Menu.Item>
      ))}
    </AddMenu>
  );
}

interface HelperProps {
  readonly place: number;
  readonly fields: JsonFields;
}

function ScheduleHelper({ place, fields }: HelperProps) {
  const { actions } = useEditorStore();
  const known = SCHEDULES.find(([expression]) => expression === fields.expression)?.[0] ?? null;
  return (
    <Select
      label={words.schedule}
      placeholder={words.ownSchedule}
      data={SCHEDULES.map(([value, label]) => ({ value, label }))}
      value={known}
      allowDeselect={false}
      onChange={(expression) => {
        if (expression === null) return;
        actions.edit(words.schedule, (edited) =>
          setAt(edited, ["triggers", place, "expression"], expression),
        );
      }}
    />
  );
}

/** What the scheduler knows of a trigger of the saved workflow: its next times, or its address. */
function SavedTrigger({ id, fields }: { readonly id: string; readonly fields: JsonFields }) {
  const document = useDocument();
  const workflow = valueAt(document, ["id"]);
  const saved = useQuery({
    queryKey: ["workflows", workflow, "triggers"],
    // A workflow that is only a draft has none: asked for as its own they would be missing, which is an error.
    queryFn: async () => {
      const query = { workflowId: String(workflow), limit: 200 };
      return dataOf(await api.GET("/api/v1/triggers", { params: { query } })).items;
    },
    retry: false,
    enabled: typeof workflow === "string",
  });
  const trigger = saved.data?.find((one) => one.id === id && one.type === fields.type);
  if (trigger === undefined) return <p className={classes.help}>{words.notSaved}</p>;
  const isSaved = isSame(trigger.settings as Json, fields);
  if ((trigger.nextTimes ?? []).length === 0 && trigger.hookPath == null) return null;
  return (
    <div className={classes.saved}>
      {!isSaved && <p className={classes.help}>{words.savedDiffers}</p>}
      {(trigger.nextTimes ?? []).length > 0 && (
        <>
          <div className={classes.subtitle}>{words.nextTimes}</div>
          <ol className={classes.times}>
            {trigger.nextTimes?.map((time) => (
              <li key={time} title={time}>
                {formatDate(time)}
              </li>
            ))}
          </ol>
        </>
      )}
      {trigger.hookPath != null && <HookAddress path={trigger.hookPath} />}
    </div>
  );
}

function HookAddress({ path }: { readonly path: string }) {
  const address = new URL(path, location.origin).href;
  return (
    <>
      <div className={classes.subtitle}>{words.address}</div>
      <div className={classes.address}>
        <code>{address}</code>
        <CopyButton value={address}>
          {({ copied, copy }) => (
            <Button size="compact-xs" variant="default" onClick={copy}>
              {copied ? texts.copied : texts.copy}
            </Button>
          )}
        </CopyButton>
      </div>
    </>
  );
}
