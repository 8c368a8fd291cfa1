import { useMemo } from "react";
import { EXPRESSION_DATA, usableValues, useLastField } from "../forms/expressions/sources";
import { useDocument } from "../stores/editor";
import { texts } from "../texts";
import { JsonTree } from "../values/JsonTree";
import { useInspector } from "./context";
import classes from "./inspector.module.css";
import { FoldedSection } from "./Section";

const words = texts.forms.usable;

/** What the steps before gave in the last run: to drag or insert into the fields of this one. */
export function UsableValues({ id }: { readonly id: string }) {
  return (
    <FoldedSection title={words.title} places={[]} help={words.help}>
      <Values id={id} />
    </FoldedSection>
  );
}

function Values({ id }: { readonly id: string }) {
  const document = useDocument();
  const { lastRun } = useInspector();
  const field = useLastField((state) => state.field);
  const values = useMemo(
    () => (lastRun === null ? {} : usableValues(document, lastRun, id)),
    [document, lastRun, id],
  );
  if (lastRun === null) return <p className={classes.help}>{texts.forms.noRun}</p>;
  if (Object.keys(values).length === 0) return <p className={classes.help}>{words.none}</p>;
  return (
    <JsonTree
      // Another run or another step is another tree: what was open in it says nothing about this one.
      key={lastRun.id}
      value={values}
      maxHeight={320}
      expressions={{
        dataType: EXPRESSION_DATA,
        insertLabel: field === null ? null : words.insert(field.label),
        onInsert: (path) => field?.take(path),
      }}
    />
  );
}
