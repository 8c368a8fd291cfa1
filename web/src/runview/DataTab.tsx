import type { ReactNode } from "react";
import { texts } from "../texts";
import { Members } from "../values/ValueView";
import { Nothing } from "./Panel";
import type { RunHeaderData } from "./queries";
import classes from "./shared.module.css";
import tablesClasses from "./tables.module.css";

function Part({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <section className={tablesClasses.dataPart}>
      <h2 className={classes.subtitle}>{title}</h2>
      {children}
    </section>
  );
}

/** What the run was started with, and what came out of it. */
export function DataTab({ header }: { readonly header: RunHeaderData }) {
  const words = texts.runView.data;
  // What is empty is left out of the answer.
  const inputs = (header.inputs ?? {}) as Readonly<Record<string, unknown>>;
  const outputs = header.outputs as Readonly<Record<string, unknown>> | undefined;
  const isOver = header.finishedAt !== null;
  return (
    <div className={tablesClasses.dataTab}>
      <Part title={words.inputs}>
        {Object.keys(inputs).length === 0 ? <Nothing title={words.noInputs} /> : <Members values={inputs} />}
      </Part>
      <Part title={words.outputs}>
        {header.outputsTruncated && <p className={classes.dim}>{words.truncated}</p>}
        {outputs === undefined || Object.keys(outputs).length === 0 ? (
          <Nothing title={words.noOutputs} hint={isOver ? words.undeclared : words.notYet} />
        ) : (
          <Members values={outputs} />
        )}
      </Part>
    </div>
  );
}
