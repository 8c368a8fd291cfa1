import { useCallback, useMemo } from "react";
import { SchemaForm } from "../forms/SchemaForm";
import { pointerOf } from "../forms/values";
import type { Widget } from "../model/definition";
import { textAt } from "../model/document";
import type { Json, JsonPath } from "../model/json/tree";
import { useDocument } from "../stores/editor";
import { useFormEdit, useInspector } from "./context";
import { errorsBelow } from "./problems";

interface EntryProps {
  /** Its steps, one by one, so that they are compared by what they are. */
  readonly path: JsonPath;
  readonly schema: Json;
  readonly widgets?: readonly Widget[];
  readonly value: Json | undefined;
}

/** A form for a part of the workflow at a place of its own. */
export function EntryForm({ path, schema, widgets, value }: EntryProps) {
  const document = useDocument();
  const { isReadOnly, problems } = useInspector();
  const pointer = pointerOf(path);
  const errors = useMemo(() => errorsBelow(problems, pointer), [problems, pointer]);
  const key = JSON.stringify(path);
  const pathOf = useCallback(() => JSON.parse(key) as JsonPath, [key]);
  const edit = useFormEdit(pathOf);
  const sourceAt = useCallback(
    (below: readonly string[]) => textAt(document, [...pathOf(), ...below]),
    [document, pathOf],
  );
  return (
    <SchemaForm
      schema={schema}
      widgets={widgets}
      showsStray={false}
      value={value}
      readOnly={isReadOnly}
      errors={errors}
      pointer={pointer}
      sourceAt={sourceAt}
      onChange={edit}
    />
  );
}
