import { IconAlertTriangle } from "@tabler/icons-react";
import type { RunError } from "../../model/run/events";
import { texts } from "../../texts";
import { errorHelp } from "../../texts/errorHelp";
import { CopyButton } from "../../values/CopyButton";
import shared from "../shared.module.css";
import classes from "./step.module.css";

/** Why an attempt did not succeed, and what to do about it. */
export function ErrorView({ error }: { readonly error: RunError }) {
  const words = texts.runView.step;
  const known = errorHelp[error.code];
  const whole = [`${error.code} ${error.category ?? ""}`.trim(), error.message, error.stack]
    .filter((one) => one != null && one !== "")
    .join("\n");
  return (
    <section className={classes.error} aria-label={words.error}>
      <div className={classes.errorHead}>
        <IconAlertTriangle size={16} aria-hidden="true" />
        <code>{error.code}</code>
        {error.category != null && <span className={shared.tag}>{error.category}</span>}
        <span className={shared.grow} />
        <CopyButton label={words.copyError} make={() => whole} />
      </div>
      <p className={classes.errorText}>{error.message || known?.says}</p>
      {known !== undefined && (
        <p className={classes.help}>
          <strong>{words.whatToDo}:</strong> {known.help}
        </p>
      )}
      {error.stack != null && error.stack !== "" && (
        <details className={classes.stack}>
          <summary>{words.stack}</summary>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls */}
          <pre tabIndex={0}>{error.stack}</pre>
        </details>
      )}
    </section>
  );
}
