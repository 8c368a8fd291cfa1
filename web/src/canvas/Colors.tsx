import { NodeToolbar, Position } from "@xyflow/react";
import classes from "./canvas.module.css";
import { CANVAS_COLORS } from "./colors";

interface Props {
  readonly color: string;
  readonly label: (color: string) => string;
  readonly onColor: (color: string) => void;
}

/** Notes and groups are below the canvas, which would take the pointer. */
const ABOVE = { zIndex: 1000 } as const;

/** The colours to choose from, above what is selected. */
export function Colors({ color, label, onColor }: Props) {
  return (
    <NodeToolbar position={Position.Top} className={classes.noteColors} style={ABOVE}>
      {CANVAS_COLORS.map((one) => (
        <button
          key={one}
          type="button"
          data-color={one}
          aria-label={label(one)}
          aria-pressed={one === color}
          onClick={() => onColor(one)}
        />
      ))}
    </NodeToolbar>
  );
}
