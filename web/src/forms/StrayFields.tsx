import type { Json } from "../model/json/tree";
import { texts } from "../texts";
import { FieldView } from "./FieldView";
import { strayField } from "./fields";
import classes from "./forms.module.css";

/** Values that are in the document though nothing describes them. */
export function StrayFields({
  keys,
  value,
}: {
  readonly keys: readonly string[];
  readonly value: Json | undefined;
}) {
  return (
    <fieldset className={classes.group}>
      <legend className={classes.legend}>{texts.forms.stray}</legend>
      <div className={classes.help}>{texts.forms.strayHelp}</div>
      {keys.map((key) => (
        <FieldView key={key} field={strayField(key, [])} value={value} />
      ))}
    </fieldset>
  );
}
