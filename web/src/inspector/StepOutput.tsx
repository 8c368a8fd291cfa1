import { StateMark } from "../canvas/StateMark";
import { readPath } from "../model/bindings";
import type { NodeType } from "../model/catalog";
import type { NodeDefinition } from "../model/definition";
import { edgesOf } from "../model/document";
import type { Json } from "../model/json/tree";
import { type Port, portsOf } from "../model/ports";
import { newNode, stepState } from "../model/run/state";
import { useDocument } from "../stores/editor";
import { texts } from "../texts";
import { useInspector } from "./context";
import classes from "./inspector.module.css";
import { PortList, ShortValue, WireEnds } from "./StepPorts";
import { useRanStep } from "./useLastRun";
import { ValueView } from "./ValueView";

const words = texts.forms.output;

interface StepProps {
  readonly node: NodeDefinition;
  readonly type: NodeType | undefined;
}

/** Where each output leads to, and what the step gave in the last run. */
export function StepOutput({ node, type }: StepProps) {
  const { lastRunId } = useInspector();
  const ran = useRanStep(lastRunId, node.id);
  const result = ran.data?.result as Json | undefined;
  const state = stepState(
    ran.data === undefined ? undefined : { ...newNode(node.id, null), status: ran.data.status },
  );
  return (
    <div className={classes.stack}>
      <PortList title={words.ports} ports={portsOf(node, type).outputs.values()}>
        {(port) => {
          const value = port.kind === "data" && result != null ? readPath(port.path, result) : undefined;
          return (
            <>
              <OutputTargets node={node} port={port} />
              {value !== undefined && <ShortValue value={value} />}
            </>
          );
        }}
      </PortList>
      <h3 className={classes.subtitle}>{words.lastRun}</h3>
      {lastRunId === null || ran.isError ? (
        <p className={classes.help}>{texts.forms.noRun}</p>
      ) : (
        ran.data !== undefined && (
          <>
            <div className={classes.ranState}>
              <StateMark state={state} />
              <span>{texts.stepState[state]}</span>
            </div>
            {ran.data.error != null && (
              <p className={classes.ranError}>{ran.data.error.message ?? ran.data.error.code}</p>
            )}
            <ValueView
              label={words.lastRun}
              value={ran.data.resultTruncated ? texts.forms.tooLarge : (result ?? undefined)}
            />
          </>
        )
      )}
    </div>
  );
}

function OutputTargets({ node, port }: { readonly node: NodeDefinition; readonly port: Port }) {
  const ends = edgesOf(useDocument())
    .filter((edge) => edge.source.node === node.id && (edge.source.port ?? "done") === port.key)
    .map(({ target }) => ({ node: target.node, port: target.port ?? "trigger" }));
  if (ends.length === 0) return <span className={classes.dim}>{words.notWired}</span>;
  return <WireEnds ends={ends} />;
}
