import { useLocalStorage } from "@mantine/hooks";
import { type KeyboardEvent, type PointerEvent, type ReactNode, useRef } from "react";
import { texts } from "../texts";
import classes from "./split.module.css";

interface Props {
  /** The size is kept under this name. */
  readonly name: string;
  readonly direction: "row" | "column";
  /** The size of the second part in pixels. */
  readonly initial: number;
  readonly min: number;
  readonly max: number;
  readonly children: readonly [ReactNode, ReactNode];
  /** Its size is not of its own just now, as that of a bar. */
  readonly isFixed?: boolean;
}

/**
 * Two parts with a bar between them, which is dragged, or moved with the arrows; a double click resets it. Without a
 * second part the first has all the room, and stays what it is.
 */
export function Split({ name, direction, initial, min, max, children, isFixed = false }: Props) {
  const [size, setSize] = useLocalStorage({
    key: `astraflow-size-${name}`,
    defaultValue: initial,
    getInitialValueInEffect: false,
  });
  const place = useRef<HTMLDivElement>(null);
  const isRow = direction === "row";
  const [first, second] = children;
  const set = (next: number): void => {
    const whole = isRow ? place.current?.clientWidth : place.current?.clientHeight;
    // The first part keeps some room whatever the window is.
    const most = Math.max(min, Math.min(max, (whole ?? max) - 160));
    setSize(Math.round(Math.max(min, Math.min(most, next))));
  };
  const drag = (event: PointerEvent<HTMLDivElement>): void => {
    const bar = event.currentTarget;
    const from = isRow ? event.clientX : event.clientY;
    bar.setPointerCapture(event.pointerId);
    const move = (moved: globalThis.PointerEvent): void =>
      set(size + from - (isRow ? moved.clientX : moved.clientY));
    bar.addEventListener("pointermove", move);
    bar.addEventListener("lostpointercapture", () => bar.removeEventListener("pointermove", move), {
      once: true,
    });
  };
  const onKey = (event: KeyboardEvent): void => {
    const step = event.shiftKey ? 64 : 16;
    if (event.key === (isRow ? "ArrowLeft" : "ArrowUp")) set(size + step);
    else if (event.key === (isRow ? "ArrowRight" : "ArrowDown")) set(size - step);
    else if (event.key === "Home") set(max);
    else if (event.key === "End") set(min);
    else return;
    event.preventDefault();
  };
  return (
    <div ref={place} className={classes.split} data-direction={direction}>
      <div className={classes.splitFirst}>{first}</div>
      {!isFixed && second !== null && (
        // biome-ignore lint/a11y/useSemanticElements: a rule cannot be moved
        <div
          className={classes.splitter}
          role="separator"
          aria-orientation={isRow ? "vertical" : "horizontal"}
          aria-label={texts.runView.resize}
          aria-valuenow={size}
          aria-valuemin={min}
          aria-valuemax={max}
          tabIndex={0}
          onPointerDown={drag}
          onDoubleClick={() => setSize(initial)}
          onKeyDown={onKey}
        />
      )}
      {second !== null && (
        <div className={classes.splitSecond} style={isFixed ? {} : { flexBasis: size }}>
          {second}
        </div>
      )}
    </div>
  );
}
