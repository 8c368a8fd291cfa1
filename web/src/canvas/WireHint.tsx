import { useConnection } from "@xyflow/react";
import classes from "./canvas.module.css";
import { useDecor } from "./decor";

/** Why the port under the pointer does not take the wire that is dragged. */
export function WireHint() {
  const wire = useDecor((decor) => decor.wire);
  const over = useConnection((connection) => connection.toHandle);
  const pointer = useConnection((connection) => connection.pointer);
  if (wire === null || over === null || over === undefined || pointer === null) return null;
  if (over.nodeId === wire.open.node && over.id === wire.open.port) return null;
  const verdict = wire.wiring.checkOpen(wire.open, over.nodeId, over.id ?? "");
  if (verdict.fits) return null;
  return (
    <div
      className={classes.wireHint}
      role="tooltip"
      style={{ transform: `translate(${pointer.x + 12}px, ${pointer.y + 12}px)` }}
    >
      {verdict.reason}
    </div>
  );
}
