import { Tooltip } from "@mantine/core";
import { iconOf } from "../canvas/icons";
import type { NodeType } from "../model/catalog";
import { texts } from "../texts";
import classes from "./editor.module.css";

interface Props {
  readonly type: NodeType;
  readonly id?: string;
  readonly isActive: boolean;
  readonly isDraggable?: boolean;
  readonly onPick: () => void;
}

export const TYPE_DATA = "application/x-astraflow-type";
const NEUTRAL = "#6b7280";

/** One type of a list: a click or Enter adds it, a drag brings it to a place. */
export function TypeRow({ type, id, isActive, isDraggable = false, onPick }: Props) {
  const Icon = iconOf(type.icon);
  return (
    <Tooltip
      multiline
      w={260}
      position="right"
      label={<TypeHelp type={type} />}
      openDelay={500}
      withinPortal
      events={{ hover: true, focus: true, touch: false }}
    >
      <div
        id={id}
        role="option"
        aria-selected={isActive}
        tabIndex={-1}
        className={classes.row}
        data-active={isActive || undefined}
        draggable={isDraggable}
        onDragStart={(event) => {
          event.dataTransfer.setData(TYPE_DATA, `${type.package.name} ${type.type}`);
          event.dataTransfer.effectAllowed = "copy";
        }}
        onClick={onPick}
        onKeyDown={(event) => {
          if (event.key === "Enter") onPick();
        }}
      >
        <span className={classes.rowTile} style={{ background: type.color ?? NEUTRAL }} aria-hidden="true">
          <Icon size={14} stroke={1.75} />
        </span>
        <span className={classes.rowLabel}>{type.label}</span>
        {type.middleware && <span className={classes.rowHint}>{texts.editor.palette.wraps}</span>}
      </div>
    </Tooltip>
  );
}

function TypeHelp({ type }: { readonly type: NodeType }) {
  return (
    <>
      <strong>{type.label}</strong> <code>{type.type}</code>
      {type.description && <div>{type.description}</div>}
      {type.middleware && <div>{texts.editor.palette.wraps}</div>}
      {type.executable === false && <div>{texts.editor.palette.notExecutable}</div>}
    </>
  );
}
