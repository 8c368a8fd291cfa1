import { TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { AddButton } from "../forms/controls/ListControls";
import { useDraft } from "../forms/useDraft";
import { useRowKeys } from "../forms/useRowKeys";
import { pointerOf } from "../forms/values";
import { EditError, removeAt, setAt, valueAt, type WorkflowDocument } from "../model/document";
import { freeName, moveMember, renameMember } from "../model/edits/settings";
import type { Json } from "../model/json/tree";
import { useDocument, useEditorStore } from "../stores/editor";
import { texts } from "../texts";
import { useInspector } from "./context";
import { EntryFold } from "./EntryFold";
import { countBelow } from "./problems";
import { FoldedSection } from "./Section";

interface NamedListProps {
  readonly title: string;
  readonly help: string;
  readonly add: string;
  /** The field of the workflow: an object whose members are listed. */
  readonly field: "inputs" | "outputs" | "runtimes";
  /** What a new one is called, and what it is; null if none can be made. */
  readonly fresh: readonly [name: string, value: Json] | null;
  readonly children: (name: string, value: Json) => ReactNode;
}

/** Inputs, outputs, runtimes: named things of a workflow that are added, renamed, moved and removed. */
export function NamedList({ title, help, add, field, fresh, children }: NamedListProps) {
  const document = useDocument();
  const { isReadOnly, problems } = useInspector();
  const { actions } = useEditorStore();
  const members = Object.entries((valueAt(document, [field]) ?? {}) as Readonly<Record<string, Json>>);
  const keys = useRowKeys(members.length);
  const [opened, setOpened] = useState(-1);
  return (
    <FoldedSection
      title={title}
      places={[`/${field}`]}
      help={help}
      count={members.length}
      problems={countBelow(problems, `/${field}`)}
    >
      {members.map(([name, value], place) => (
        <EntryFold
          key={keys.all[place]}
          name={name}
          pointer={pointerOf([field, name])}
          isOpen={members.length === 1 || place === opened}
          place={place}
          count={members.length}
          onMove={(to) => {
            keys.move(place, to);
            actions.edit(texts.forms.movedEntry(name), (edited) => moveMember(edited, [field], name, to));
          }}
          onRemove={() => {
            keys.remove(place);
            actions.edit(texts.forms.removedEntry(name), (edited) => without(edited, field, name));
          }}
        >
          {!isReadOnly && <NameField field={field} name={name} />}
          {children(name, value)}
        </EntryFold>
      ))}
      {!isReadOnly && fresh !== null && (
        <AddButton
          label={add}
          onClick={() => {
            const name = freeName(
              members.map(([one]) => one),
              fresh[0],
            );
            setOpened(members.length);
            actions.edit(add, (edited) => setAt(edited, [field, name], fresh[1]));
          }}
        />
      )}
    </FoldedSection>
  );
}

/** With the last one goes what held it. */
function without(document: WorkflowDocument, field: string, name: string): WorkflowDocument {
  const edited = removeAt(document, [field, name]);
  return Object.keys((valueAt(edited, [field]) ?? {}) as object).length === 0
    ? removeAt(edited, [field])
    : edited;
}

function NameField({ field, name }: { readonly field: string; readonly name: string }) {
  const document = useDocument();
  const { actions } = useEditorStore();
  const taken = Object.keys((valueAt(document, [field]) ?? {}) as object);
  const draft = useDraft(name, false, (next) => {
    if (next === "" || (next !== name && taken.includes(next))) return draft.change(name);
    actions.edit(texts.forms.renamedEntry(name), (edited) => {
      try {
        return renameMember(edited, [field], name, next);
      } catch (error) {
        if (error instanceof EditError) return edited;
        throw error;
      }
    });
  });
  const isTaken = draft.value !== name && taken.includes(draft.value);
  return (
    <TextInput
      label={texts.forms.entryName}
      value={draft.value}
      error={isTaken ? texts.forms.nameTaken : undefined}
      onChange={(event) => draft.change(event.currentTarget.value)}
      onBlur={draft.flush}
      onKeyDown={(event) => {
        if (event.key === "Enter") draft.flush();
      }}
    />
  );
}
