import { Select } from "@mantine/core";
import { typeOfNode } from "../forms/expressions/names";
import { nodesOf, setAt } from "../model/document";
import { setSetting } from "../model/edits/settings";
import type { Json } from "../model/json/tree";
import { portsOf } from "../model/ports";
import { useDocument, useEditorStore } from "../stores/editor";
import { texts } from "../texts";
import { useInspector } from "./context";
import classes from "./inspector.module.css";
import { labelOfNode } from "./wired";

const words = texts.forms.workflow;

/** The step and the port that an output of the run is read from. */
export function OutputSource({ name, value }: { readonly name: string; readonly value: Json }) {
  const document = useDocument();
  const { catalog, isReadOnly } = useInspector();
  const { actions } = useEditorStore();
  const source = (
    value as { readonly source?: { readonly node?: string; readonly port?: string | null } } | null
  )?.source;
  // Nothing outside of a container reads a step inside of it.
  const nodes = nodesOf(document).filter((one) => one.parent == null || one.id === source?.node);
  const node = nodes.find((one) => one.id === source?.node);
  const ports = node === undefined ? [] : [...portsOf(node, typeOfNode(node, catalog)).outputs.values()];
  const port = source?.port ?? "done";
  if (isReadOnly) {
    return (
      <p className={classes.text}>
        {texts.forms.input.from(labelOfNode(document, source?.node ?? ""), port)}
      </p>
    );
  }
  const path = ["outputs", name, "source"];
  return (
    <div className={classes.pairOfFields}>
      <Select
        label={words.outputStep}
        searchable
        allowDeselect={false}
        data={nodes.map((one) => ({ value: one.id, label: one.label ?? one.type }))}
        value={source?.node ?? null}
        onChange={(id) => {
          if (id === null) return;
          actions.edit(texts.forms.changed(name), (edited) =>
            setSetting(setAt(edited, [...path, "node"], id), [...path, "port"], undefined, path.length),
          );
        }}
      />
      <Select
        label={words.outputPort}
        allowDeselect={false}
        data={ports.map((one) => ({ value: one.key, label: one.label }))}
        value={port}
        onChange={(key) => {
          if (key === null) return;
          actions.edit(texts.forms.changed(name), (edited) => setAt(edited, [...path, "port"], key));
        }}
      />
    </div>
  );
}
