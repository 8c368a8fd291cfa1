/** What all parts of the inspector need. */

import { createContext, useCallback, useContext } from "react";
import type { LastRun } from "../forms/expressions/names";
import type { FieldChange } from "../forms/SchemaForm";
import type { NodeCatalog } from "../model/catalog";
import { setTextAt, type WorkflowDocument } from "../model/document";
import { setSetting } from "../model/edits/settings";
import type { JsonPath } from "../model/json/tree";
import type { Problem } from "../model/validation/problems";
import { useEditorStore } from "../stores/editor";
import { texts } from "../texts";

export interface InspectorHost {
  readonly catalog: NodeCatalog;
  readonly problems: readonly Problem[];
  readonly lastRunId: string | null;
  readonly lastRun: LastRun | null;
  readonly isReadOnly: boolean;
}

export const InspectorContext = createContext<InspectorHost | null>(null);

export function useInspector(): InspectorHost {
  const host = useContext(InspectorContext);
  if (host === null) throw new Error("there is no inspector around");
  return host;
}

type PathOf = (document: WorkflowDocument) => JsonPath;

/**
 * Takes what a form has changed into the document, as one entry of the history. The place is asked for when the change
 * comes: nodes may have moved in the list since. What is empty afterwards goes, but not the place itself.
 */
export function useFormEdit(
  pathOf: PathOf,
  keepsPlace = true,
): (value: unknown, change: FieldChange) => void {
  const { actions } = useEditorStore();
  return useCallback(
    (_, { path, value, text }) => {
      const name = path.findLast((step) => !/^[0-9]+$/.test(step)) ?? "";
      actions.edit(texts.forms.changed(name), (document) => {
        const place = pathOf(document);
        const whole = [...place, ...path];
        if (text !== undefined && value !== undefined) return setTextAt(document, whole, text);
        return setSetting(document, whole, value, keepsPlace ? place.length : place.length - 1);
      });
    },
    [actions, pathOf, keepsPlace],
  );
}
