import { readPath } from "../model/bindings";
import type { NodeType } from "../model/catalog";
import type { NodeDefinition } from "../model/definition";
import { edgesOf } from "../model/document";
import type { Json } from "../model/json/tree";
import { type Port, portsOf } from "../model/ports";
import { useDocument } from "../stores/editor";
import { texts } from "../texts";
import { useInspector } from "./context";
import classes from "./inspector.module.css";
import { PortList, ShortValue, WireEnds } from "./StepPorts";
import { useRanStep } from "./useLastRun";
import { ValueView } from "./ValueView";

const words = texts.forms.input;

interface StepProps {
  readonly node: NodeDefinition;
  readonly type: NodeType | undefined;
}

/** What each input is wired to or set to, and what the step was given in the last run. */
export function StepInput({ node, type }: StepProps) {
  const { lastRunId } = useInspector();
  const ran = useRanStep(lastRunId, node.id);
  return (
    <div className={classes.stack}>
      <PortList title={words.ports} ports={portsOf(node, type).inputs.values()}>
        {(port) => <InputSource node={node} port={port} />}
      </PortList>
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

function InputSource({ node, port }: { readonly node: NodeDefinition; readonly port: Port }) {
  const ends = edgesOf(useDocument())
    .filter((edge) => edge.target.node === node.id && (edge.target.port ?? "trigger") === port.key)
    .map(({ source }) => ({ node: source.node, port: source.port ?? "done" }));
  if (ends.length > 0) return <WireEnds ends={ends} />;
  if (port.kind !== "data") return <span className={classes.dim}>{words.notWired}</span>;
  const value = readPath(port.path, (node.parameters ?? undefined) as Json | undefined);
  if (value === undefined) return <span className={classes.dim}>{words.notSet}</span>;
  return <ShortValue value={value} />;
}
