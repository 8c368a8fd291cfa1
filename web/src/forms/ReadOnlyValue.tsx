import type { Json } from "../model/json/tree";
import { texts } from "../texts";
import type { Field } from "./fields";
import classes from "./forms.module.css";
import { resourceName, secretName } from "./references";
import { isSame, shortText } from "./values";

interface ValueProps {
  readonly field: Field;
  readonly value: Json | undefined;
  readonly labelledBy: string;
}

/** A value as text: what cannot be changed does not look like a field. */
export function ReadOnlyValue({ field, value, labelledBy }: ValueProps) {
  const shown = value === undefined ? field.defaultValue : value;
  if (shown === undefined) {
    return (
      <div className={classes.nothing} aria-labelledby={labelledBy} role="note">
        {field.root === "results" ? texts.forms.noResult : texts.forms.notSet}
      </div>
    );
  }
  const isDefault = value === undefined;
  const name = field.control === "secret" ? secretName(shown) : resourceName(shown);
  const text = name === "" ? textFor(field, shown) : name;
  const isBlock =
    text.includes("\n") || text.length > 60 || field.control === "json" || field.control === "code";
  if (isBlock && (field.isCollapsed || text.length > 400)) {
    return (
      <details className={classes.details}>
        <summary>{summaryOf(shown)}</summary>
        <pre className={classes.block}>{text}</pre>
      </details>
    );
  }
  const isProse = field.control === "text" && typeof shown === "string" && !shown.startsWith("=");
  if (isBlock && !isProse) return <pre className={classes.block}>{text}</pre>;
  return (
    <div className={classes.plain} data-mono={text.startsWith("=") || undefined}>
      {text}
      {isDefault && <span className={classes.unit}> {texts.forms.isDefault}</span>}
    </div>
  );
}

function textFor(field: Field, value: Json): string {
  // Whatever stands in the place of a reference to a secret may be one: it is not shown.
  if (field.control === "secret")
    return typeof value === "string" && value.startsWith("=") ? value : texts.forms.hidden;
  const choice = field.choices?.find((one) => isSame(one.value, value));
  if (choice !== undefined) return choice.label;
  if (typeof value === "boolean") return value ? texts.forms.yes : texts.forms.no;
  if (typeof value === "string") return value === "" ? texts.forms.emptyText : value;
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value.join(", ");
  return value !== null && typeof value === "object" ? JSON.stringify(value, null, 2) : shortText(value);
}

function summaryOf(value: Json): string {
  if (Array.isArray(value)) return texts.forms.count.items(value.length);
  if (value !== null && typeof value === "object") return texts.forms.count.fields(Object.keys(value).length);
  return texts.forms.count.characters(String(value).length);
}
