import { useMemo } from "react";
import { SchemaForm } from "../forms/SchemaForm";
import { isFields } from "../forms/schema";
import { nodesOf, valueAt } from "../model/document";
import type { Json, JsonFields } from "../model/json/tree";
import { useDocument } from "../stores/editor";
import { texts } from "../texts";
import { useFormEdit, useInspector } from "./context";
import { EntryForm } from "./EntryForm";
import classes from "./inspector.module.css";
import { NamedList } from "./NamedList";
import { OutputSource } from "./OutputSource";
import { countBelow, errorsBelow } from "./problems";
import { FoldedSection } from "./Section";
import { TriggerList } from "./TriggerList";
import { ABOUT, INPUT_WIDGETS, inputSchema, OUTPUT, RUNS, RUNTIME } from "./workflowFields";

const words = texts.forms.workflow;
const RUN_FIELDS = Object.keys(RUNS.properties as JsonFields);
const ROOT = (): readonly string[] => [];

/** The workflow itself: what it is called, what it takes and gives, and what starts it. */
export function WorkflowInspector() {
  const document = useDocument();
  const { problems, isReadOnly } = useInspector();
  const edit = useFormEdit(ROOT);
  const [first] = nodesOf(document);
  const runErrors = useMemo(
    () =>
      RUN_FIELDS.flatMap((key) =>
        errorsBelow(problems, `/${key}`).map((one) => ({ ...one, pointer: `/${key}${one.pointer}` })),
      ),
    [problems],
  );
  const root = valueAt(document, []);
  return (
    <>
      <header className={classes.head}>
        <h2 className={classes.name}>{words.title}</h2>
      </header>
      <div className={classes.body}>
        <EntryForm path={["metadata"]} schema={ABOUT} value={valueAt(document, ["metadata"])} />
        <div>
          <NamedList
            title={words.inputs}
            help={words.inputsHelp}
            add={words.addInput}
            field="inputs"
            fresh={["input", { schema: { type: "string" } }]}
          >
            {(name, value) => (
              <EntryForm
                path={["inputs", name]}
                schema={inputSchema(isFields(value) ? value.schema : undefined)}
                widgets={INPUT_WIDGETS}
                value={value}
              />
            )}
          </NamedList>
          <NamedList
            title={words.outputs}
            help={words.outputsHelp}
            add={words.addOutput}
            field="outputs"
            fresh={first === undefined ? null : ["output", { source: { node: first.id } }]}
          >
            {(name, value) => (
              <>
                <OutputSource name={name} value={value} />
                <EntryForm path={["outputs", name]} schema={OUTPUT} value={value} />
              </>
            )}
          </NamedList>
          <TriggerList />
          <FoldedSection
            title={words.runs}
            places={RUN_FIELDS.map((key) => `/${key}`)}
            count={setIn(root, RUN_FIELDS)}
            problems={runErrors.length}
          >
            <SchemaForm
              schema={RUNS}
              value={root}
              readOnly={isReadOnly}
              errors={runErrors}
              showsStray={false}
              onChange={edit}
            />
          </FoldedSection>
          <NamedList
            title={words.runtimes}
            help={words.runtimesHelp}
            add={words.addRuntime}
            field="runtimes"
            fresh={["python", {}]}
          >
            {(name, value) => <EntryForm path={["runtimes", name]} schema={RUNTIME} value={value} />}
          </NamedList>
          {countBelow(problems, "") > 0 && <p className={classes.help}>{words.problems}</p>}
        </div>
      </div>
    </>
  );
}

function setIn(root: Json | undefined, keys: readonly string[]): number {
  return isFields(root) ? keys.filter((key) => root[key] !== undefined && root[key] !== null).length : 0;
}
