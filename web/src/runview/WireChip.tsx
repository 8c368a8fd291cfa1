import { memo, useMemo } from "react";
import { sourceHandle } from "../canvas/flow";
import type { WireChipProps } from "../canvas/wireChip";
import { portsOf } from "../model/ports";
import { useResult, useStep } from "../stores/run";
import { texts } from "../texts";
import { formatBytes, shortId } from "../values/format";
import classes from "./page.module.css";
import { useDefinition } from "./runPage";
import { summaryOf } from "./wireData";

/** What has gone over a wire: how many and how large; when somebody is near, also the first of it and who has it. */
export const WireChip = memo(function WireChip({ edge, x, y, isNear }: WireChipProps) {
  const definition = useDefinition();
  const result = useResult(edge.source.node);
  const isActive = useStep(edge.target.node)?.status === "running";
  const summary = useMemo(() => {
    const node = definition.nodes.get(edge.source.node);
    if (node === undefined || result === undefined) return null;
    const port = portsOf(node, definition.typeOf(node)).outputs.get(sourceHandle(edge));
    return port === undefined || port.kind !== "data" ? null : summaryOf(result, port.path);
  }, [definition, edge, result]);
  if (summary === null || (!isNear && !isActive && summary.count === null)) return null;
  const facts = [
    summary.count === null ? null : texts.runView.wire.items(summary.count),
    summary.bytes === null || (!isNear && summary.count !== null) ? null : formatBytes(summary.bytes),
    summary.owner === null ? null : texts.runView.wire.owner(shortId(summary.owner)),
  ].filter((one) => one !== null);
  return (
    <div
      className={classes.wireChip}
      data-near={isNear || undefined}
      style={{ transform: `translate(-50%, -50%) translate(${x}px, ${y}px)` }}
    >
      <span>{facts.join(" · ")}</span>
      {isNear && summary.first !== "" && <code>{summary.first}</code>}
    </div>
  );
});
