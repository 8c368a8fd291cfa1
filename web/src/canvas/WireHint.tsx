import { useConnection } from "@xyflow/react";
import classes from "./canvas.module.css";
import { useDecor } from "./decor";
import { hintOf } from "./wireFit";

/** At the pointer: why the wire cannot end here, or where it would. */
export function WireHint() {
  const wire = useDecor((decor) => decor.wire);
  const port = useConnection((connection) => connection.toHandle);
  const pointer = useConnection((connection) => connection.pointer);
  const hint = wire === null ? null : hintOf(wire, port ?? null);
  if (hint === null || pointer === null) return null;
  return (
    <div
      className={classes.wireHint}
      role="tooltip"
      data-fits={hint.fits || undefined}
      style={{ transform: `translate(${pointer.x + 14}px, ${pointer.y + 14}px)` }}
    >
      {hint.text}
    </div>
  );
}
