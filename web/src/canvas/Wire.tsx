import { BaseEdge, EdgeLabelRenderer, type EdgeProps, getBezierPath } from "@xyflow/react";
import { memo, useContext, useState } from "react";
import { edgeKey } from "../model/run/state";
import { useHasRun, useRun, useStep } from "../stores/run";
import classes from "./canvas.module.css";
import { useDecor } from "./decor";
import type { WireEdge } from "./flow";
import { WireChipContext } from "./wireChip";

/** A condition fits between the two steps: it must not lie over their ports. */
const WIDEST = 180;
const NARROWEST = 40;
const MARGIN = 24;

/** An edge. In a run it shows whether something has gone over it. */
export const Wire = memo(function Wire(props: EdgeProps<WireEdge>) {
  const { id, source, target, data, selected } = props;
  const [path, x, y] = getBezierPath(props);
  const hasRun = useHasRun();
  const from = useStep(source);
  const to = useStep(target);
  const taken = useRun((run) => run.edges.get(edgeKey(source, target)));
  const Chip = useContext(WireChipContext);
  const [isNear, setIsNear] = useState(false);
  const difference = useDecor((decor) => decor.differences.get(id));
  const kind = data?.kind ?? "control";
  const isLive = kind === "error" ? from?.status === "failed" : from?.status === "succeeded";
  // Of a choice by port nobody tells which ways were not taken: what was skipped got nothing.
  const isDead = taken === false || to?.status === "skipped";
  const state = !hasRun ? undefined : isDead ? "dead" : isLive ? "taken" : "idle";
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: what it shows is in the panel of the step, too
    <g onMouseEnter={() => setIsNear(true)} onMouseLeave={() => setIsNear(false)}>
      <BaseEdge
        id={id}
        path={path}
        className={classes.wire}
        data-kind={kind}
        data-state={state}
        data-difference={difference}
        data-selected={selected || undefined}
        interactionWidth={20}
      />
      {data?.edge.when != null && (
        <EdgeLabelRenderer>
          <span
            className={classes.condition}
            title={data.edge.when}
            style={{
              maxWidth: Math.min(WIDEST, Math.max(NARROWEST, props.targetX - props.sourceX - MARGIN)),
              transform: `translate(-50%, -50%) translate(${x}px, ${y}px)`,
            }}
          >
            {data.edge.when}
          </span>
        </EdgeLabelRenderer>
      )}
      {Chip !== null && data !== undefined && taken !== false && (
        <EdgeLabelRenderer>
          <Chip edge={data.edge} x={x} y={y} isNear={isNear || selected === true} />
        </EdgeLabelRenderer>
      )}
    </g>
  );
});
