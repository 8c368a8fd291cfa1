import { type KeyboardEvent, type PointerEvent, useRef } from "react";
import classes from "./editor.module.css";
import { LIMITS, type Region } from "./layout";

interface Props {
  readonly region: Region;
  readonly size: number;
  readonly label: string;
  /** Whether the region grows when the pointer goes right or down. */
  readonly growsForward: boolean;
  readonly onResize: (size: number) => void;
  readonly onReset: () => void;
}

const STEP = 16;

/** The border of a region: drag it, or use the arrows; a double click gives the usual size. */
export function Splitter({ region, size, label, growsForward, onResize, onReset }: Props) {
  const start = useRef<{ at: number; size: number } | null>(null);
  const isFlat = region === "dock";
  const place = (event: PointerEvent): number => (isFlat ? event.clientY : event.clientX);
  const sign = growsForward ? 1 : -1;
  const onKeyDown = (event: KeyboardEvent): void => {
    const back = isFlat ? "ArrowUp" : "ArrowLeft";
    const forth = isFlat ? "ArrowDown" : "ArrowRight";
    if (event.key !== back && event.key !== forth) return;
    event.preventDefault();
    onResize(size + (event.key === forth ? STEP : -STEP) * sign);
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a rule cannot be moved
    <div
      className={classes.splitter}
      data-region={region}
      role="separator"
      tabIndex={0}
      aria-label={label}
      aria-orientation={isFlat ? "horizontal" : "vertical"}
      aria-valuenow={size}
      aria-valuemin={LIMITS[region].min}
      aria-valuemax={LIMITS[region].max}
      onKeyDown={onKeyDown}
      onDoubleClick={onReset}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        start.current = { at: place(event), size };
      }}
      onPointerMove={(event) => {
        if (start.current !== null) onResize(start.current.size + (place(event) - start.current.at) * sign);
      }}
      onPointerUp={() => {
        start.current = null;
      }}
    />
  );
}
