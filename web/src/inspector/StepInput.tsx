import { Anchor } from "@mantine/core";
import { shortText } from "../forms/values";
import { readPath } from "../model/bindings";
import type { NodeType } from "../model/catalog";
import type { NodeDefinition } from "../model/definition";
import { edgesOf } from "../model/document";
import type { Json } from "../model/json/tree";
import { type Port, portsOf } from "../model/ports";
import { useDocument, useEditorStore } from "../stores/editor";
import { texts } from "../texts";
import { useInspector } from "./context";
import classes from "./inspector.module.css";
import { useRanStep } from "./useLastRun";
import { ValueView } from "./ValueView";
import { labelOfNode } from "./wired";

const words = texts.forms.input;

interface StepProps {
  readonly node: NodeDefinition;
  readonly type: NodeType | undefined;
}

/** What each input is wired to or set to, and what the step was given in the last run. */
export function StepInput({ node, type }: StepProps) {
  const { lastRunId } = useInspector();
  const ran = useRanStep(lastRunId, node.id);
  const ports = [...portsOf(node, type).inputs.values()];
  return (
    <div className={classes.stack}>
      <h3 className={classes.subtitle}>{words.ports}</h3>
      <ul className={classes.portList}>
        {ports.map((port) => (
          <li key={port.key} className={classes.portItem} data-kind={port.kind}>
            <PortName port={port} />
            <InputSource node={node} port={port} />
          </li>
        ))}
      </ul>
      <h3 className={classes.subtitle}>{words.lastRun}</h3>
      {lastRunId === null ? (
        <p className={classes.help}>{texts.forms.noRun}</p>
      ) : (
        <ValueView
          label={words.lastRun}
          value={
            ran.data?.parametersTruncated ? texts.forms.tooLarge : (ran.data?.parameters as Json | undefined)
          }
        />
      )}
    </div>
  );
}

export function PortName({ port }: { readonly port: Port }) {
  const types = [...(port.types ?? [])].sort().join(" | ");
  return (
    <div className={classes.portName}>
      <span>{port.label}</span>
      {types !== "" && port.kind === "data" && <span className={classes.portType}>{types}</span>}
    </div>
  );
}

function InputSource({ node, port }: { readonly node: NodeDefinition; readonly port: Port }) {
  const document = useDocument();
  const edges = edgesOf(document).filter(
    (edge) => edge.target.node === node.id && (edge.target.port ?? "trigger") === port.key,
  );
  if (edges.length > 0) {
    return (
      <>
        {edges.map((edge) => (
          <StepLink
            key={`${edge.source.node}:${edge.source.port ?? ""}`}
            id={edge.source.node}
            port={edge.source.port ?? "done"}
          />
        ))}
      </>
    );
  }
  if (port.kind !== "data") return <span className={classes.dim}>{words.notWired}</span>;
  const value = readPath(port.path, (node.parameters ?? undefined) as Json | undefined);
  if (value === undefined) return <span className={classes.dim}>{words.notSet}</span>;
  return (
    <code className={classes.value} title={shortText(value)}>
      {shortText(value)}
    </code>
  );
}

/** A step by its label; a click selects it. */
export function StepLink({ id, port }: { readonly id: string; readonly port?: string }) {
  const document = useDocument();
  const { actions } = useEditorStore();
  const name = labelOfNode(document, id);
  return (
    <Anchor
      component="button"
      type="button"
      size="xs"
      className={classes.link}
      onClick={() => actions.select([id])}
    >
      {port === undefined ? name : words.from(name, port)}
    </Anchor>
  );
}
