import type { Json } from "../model/json/tree";
import { texts } from "../texts";
import type { Differences, FieldChange } from "./differences";
import classes from "./editor.module.css";

const words = texts.editor.differences;

const shown = (value: Json | undefined): string =>
  value === undefined ? words.nothing : typeof value === "string" ? value : JSON.stringify(value);

function Fields({ fields }: { readonly fields: readonly FieldChange[] }) {
  return (
    <dl className={classes.fieldChanges}>
      {fields.map((change) => (
        <div key={change.field}>
          <dt>
            <code>{change.field}</code>
          </dt>
          <dd>
            <del>{shown(change.before)}</del>
            <ins>{shown(change.after)}</ins>
          </dd>
        </div>
      ))}
    </dl>
  );
}

interface Props {
  readonly differences: Differences;
  readonly selection: ReadonlySet<string>;
  readonly onSelect: (id: string) => void;
}

/** What differs, step by step and field by field. */
export function DifferenceList({ differences, selection, onSelect }: Props) {
  const { steps, edges, settings, hasOtherNotes, isEqual } = differences;
  const kinds = [...edges.values()];
  return (
    <aside className={classes.differenceList} aria-label={words.title}>
      {isEqual && <p>{words.none}</p>}
      <ul>
        {steps.map((step) => (
          <li key={step.id}>
            <button
              type="button"
              data-difference={step.kind}
              data-active={selection.has(step.id) || undefined}
              onClick={() => onSelect(step.id)}
            >
              <span>{words.kinds[step.kind]}</span>
              <strong>{step.label}</strong>
            </button>
            <Fields fields={step.fields} />
          </li>
        ))}
      </ul>
      {edges.size > 0 && (
        <p>
          {words.edges(
            kinds.filter((kind) => kind === "added").length,
            kinds.filter((kind) => kind === "removed").length,
          )}
        </p>
      )}
      {hasOtherNotes && <p>{words.notes}</p>}
      {settings.length > 0 && (
        <>
          <h3>{words.settings}</h3>
          <Fields fields={settings} />
        </>
      )}
    </aside>
  );
}
