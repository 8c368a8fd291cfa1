import type { NodeProps } from "@xyflow/react";
import { type CSSProperties, memo } from "react";
import type { NodeDefinition } from "../model/definition";
import type { NodePorts } from "../model/ports";
import { type RunNode, stepState } from "../model/run/state";
import { useHasRun, useStep } from "../stores/run";
import { texts } from "../texts";
import { withLocalTimes } from "../values/format";
import classes from "./canvas.module.css";
import { useDecor } from "./decor";
import type { StepFlowNode } from "./flow";
import { iconOf } from "./icons";
import { NodeMark } from "./NodeMark";
import { NodeName } from "./NodeName";
import { isQuiet, PortHandle } from "./PortHandle";
import { useWireFit } from "./wireFit";

const NEUTRAL = "#6b7280";

interface PortsProps {
  readonly node: string;
  readonly ports: NodePorts;
  readonly side: "in" | "out";
}

function Ports({ node, ports, side }: PortsProps) {
  const all = [...(side === "in" ? ports.inputs : ports.outputs).values()];
  return (
    <div>
      {all.map((port) =>
        isQuiet(port) ? (
          <PortHandle key={port.key} node={node} port={port} side={side} />
        ) : (
          <div key={port.key} className={classes.port} data-side={side}>
            <PortHandle node={node} port={port} side={side} />
            <span>{port.label}</span>
          </div>
        ),
      )}
    </div>
  );
}

/** A middleware around the step. */
function Chip({ node }: { readonly node: NodeDefinition }) {
  const actions = useDecor((decor) => decor.actions);
  const problems = useDecor((decor) => decor.problems.has(node.id));
  const label = node.label ?? node.type;
  if (actions === null) return <span className={classes.chip}>{label}</span>;
  return (
    <button
      type="button"
      className={`${classes.chip} nodrag nopan`}
      data-problem={problems || undefined}
      onClick={(event) => {
        event.stopPropagation();
        actions.select(node.id);
      }}
    >
      {label}
    </button>
  );
}

/** The line below the label: what the state means just now. */
function detailOf(step: RunNode | undefined): string | null {
  if (step === undefined) return null;
  if (step.error !== null && step.status !== "succeeded")
    return step.error.message?.split("\n", 1)[0] ?? step.error.code;
  if (step.waitingFor !== null)
    return withLocalTimes(texts.waiting(step.waitingFor.kind, step.waitingFor.detail), Date.now());
  if (step.message !== null && step.status === "running") return step.message;
  const counts = step.itemCounts;
  if (counts !== null) return texts.items(counts.succeeded + counts.failed + counts.skipped, counts.total);
  return null;
}

export const StepNode = memo(function StepNode({ data, selected }: NodeProps<StepFlowNode>) {
  const { node, type, ports, chain } = data;
  const step = useStep(node.id);
  const hasRun = useHasRun();
  const state = stepState(step);
  const Icon = iconOf(type?.icon);
  const color = type?.color ?? NEUTRAL;
  const label = node.label ?? type?.label ?? node.type;
  const difference = useDecor((decor) => decor.differences.get(node.id));
  const fit = useWireFit(node.id);
  const detail = hasRun ? detailOf(step) : null;
  return (
    <div
      className={classes.step}
      style={{ "--type": color } as CSSProperties}
      data-state={hasRun ? state : undefined}
      data-selected={selected || undefined}
      data-disabled={node.disabled || undefined}
      data-difference={difference}
      data-fit={fit}
      data-missing={type === undefined || undefined}
    >
      {chain.length > 0 && (
        <div className={classes.chain}>
          {chain.map((one) => (
            <Chip key={one.id} node={one} />
          ))}
        </div>
      )}
      <div className={classes.head}>
        <span className={classes.tile} style={{ background: color }} aria-hidden="true">
          <Icon size={16} stroke={1.75} />
        </span>
        <NodeName id={node.id} label={label} />
        {node.map != null && <span className={classes.badge}>{texts.canvas.map}</span>}
        <NodeMark id={node.id} isMissing={type === undefined} isDisabled={node.disabled === true} />
      </div>
      {detail !== null && (
        <div className={classes.detail} title={detail}>
          {detail}
        </div>
      )}
      <div className={classes.ports}>
        <Ports node={node.id} ports={ports} side="in" />
        <Ports node={node.id} ports={ports} side="out" />
      </div>
      {step?.progress != null && step.status === "running" && (
        <div className={classes.progress} style={{ width: `${Math.round(step.progress * 100)}%` }} />
      )}
    </div>
  );
});
