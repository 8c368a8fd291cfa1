import type { NodeProps } from "@xyflow/react";
import { type CSSProperties, memo } from "react";
import { texts } from "../texts";
import { Colors } from "./Colors";
import classes from "./canvas.module.css";
import { CANVAS_COLORS } from "./colors";
import { useDecor } from "./decor";
import type { FrameFlowNode } from "./flow";
import { NodeName } from "./NodeName";

/** A group: a titled frame behind its steps. Its title is what selects and drags it. */
export const FrameNode = memo(function FrameNode({ id, data, selected }: NodeProps<FrameFlowNode>) {
  const { label, color = "gray" } = data.group;
  const actions = useDecor((decor) => decor.actions);
  const isNamed = (CANVAS_COLORS as readonly string[]).includes(color);
  return (
    <>
      {actions !== null && selected && (
        <Colors
          color={color}
          label={texts.canvas.groupColor}
          onColor={(next) => actions.colorGroup(id, next)}
        />
      )}
      <div
        className={classes.frame}
        data-selected={selected || undefined}
        data-color={isNamed ? color : undefined}
        style={isNamed ? undefined : ({ "--frame": color } as CSSProperties)}
      >
        <div className={classes.frameTitle}>
          <NodeName id={id} label={label} field={texts.canvas.groupName} />
        </div>
      </div>
    </>
  );
});
