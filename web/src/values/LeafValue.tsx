import { IconKey, IconPaperclip } from "@tabler/icons-react";
import { texts } from "../texts";
import { formatBytes } from "./format";
import { addressOf, referenceOf, secretOf } from "./references";
import classes from "./values.module.css";

const SHOWN = 300;

/** One value in one line: of a row of a tree, or of a cell of a table. */
export function LeafValue({ value }: { readonly value: unknown }) {
  const words = texts.runView.values;
  const secret = secretOf(value);
  if (secret !== null)
    return (
      <span className={classes.badge} title={words.secretHint}>
        <IconKey size={12} /> {words.secret(secret)}
      </span>
    );
  const reference = referenceOf(value);
  if (reference !== null)
    return (
      <a className={classes.badge} href={addressOf(reference)} onClick={(event) => event.stopPropagation()}>
        <IconPaperclip size={12} /> {reference.name}
        {reference.sizeBytes !== null && ` · ${formatBytes(reference.sizeBytes)}`}
      </a>
    );
  if (typeof value === "string") {
    const shown = value.length > SHOWN ? `${value.slice(0, SHOWN)}…` : value;
    return (
      <span className={classes.leaf} data-type="string" title={value.slice(0, 2_000)}>
        {JSON.stringify(shown)}
      </span>
    );
  }
  const type = value === null ? "null" : typeof value;
  return (
    <span className={classes.leaf} data-type={type}>
      {typeof value === "object" ? JSON.stringify(value)?.slice(0, SHOWN) : String(value)}
    </span>
  );
}
