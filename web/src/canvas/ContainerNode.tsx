import type { NodeProps } from "@xyflow/react";
import { Fragment, memo } from "react";
import type { Port } from "../model/ports";
import { stepState } from "../model/run/state";
import { useHasRun, useStep } from "../stores/run";
import { texts } from "../texts";
import classes from "./canvas.module.css";
import { useDecor } from "./decor";
import type { StepFlowNode } from "./flow";
import { NodeMark } from "./NodeMark";
import { NodeName } from "./NodeName";
import { PortHandle } from "./PortHandle";
import { useWireFit } from "./wireFit";

/** A container: a frame with a head, and its ports on both sides. */
export const ContainerNode = memo(function ContainerNode({ data, selected }: NodeProps<StepFlowNode>) {
  const { node, ports } = data;
  const step = useStep(node.id);
  const hasRun = useHasRun();
  const state = stepState(step);
  const difference = useDecor((decor) => decor.differences.get(node.id));
  const fit = useWireFit(node.id);
  return (
    <div
      className={classes.box}
      data-state={hasRun ? state : undefined}
      data-difference={difference}
      data-fit={fit}
      data-selected={selected || undefined}
      data-disabled={node.disabled || undefined}
    >
      <div className={classes.boxHead}>
        <NodeName id={node.id} label={node.label ?? texts.canvas.container} />
        {node.map != null && <span className={classes.badge}>{texts.canvas.map}</span>}
        <NodeMark id={node.id} isMissing={false} isDisabled={node.disabled === true} />
      </div>
      <BoxPorts node={node.id} ports={ports.inputs} side="in" />
      <BoxPorts node={node.id} ports={ports.outputs} side="out" />
    </div>
  );
});

interface BoxPortsProps {
  readonly node: string;
  readonly ports: ReadonlyMap<string, Port>;
  readonly side: "in" | "out";
}

/** Each port from the outside, and those of data from the inside, too: edges at the border bring values in and out. */
function BoxPorts({ node, ports, side }: BoxPortsProps) {
  return [...ports.values()].map((port, place) => {
    const style = { top: 24 + place * 18 };
    const shared = { node, port, side } as const;
    return (
      <Fragment key={port.key}>
        <PortHandle {...shared} style={style} />
        {port.kind === "data" && !port.isImplied && <PortHandle {...shared} style={style} isInner />}
      </Fragment>
    );
  });
}
