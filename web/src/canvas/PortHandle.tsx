import { Handle, Position } from "@xyflow/react";
import type { CSSProperties } from "react";
import type { Port } from "../model/ports";
import { innerPort } from "../model/wiring";
import classes from "./canvas.module.css";
import { useDecor } from "./decor";

const SIDES = { in: Position.Left, out: Position.Right } as const;

/** Ports that every step has stand at its head and its foot, without a row: most steps use one of them at most. */
export const isQuiet = (port: Port): boolean => port.isImplied && port.kind !== "data";

interface Props {
  readonly node: string;
  readonly port: Port;
  readonly side: "in" | "out";
  readonly style?: CSSProperties;
  /** Of a container: the port as what is inside sees it. */
  readonly isInner?: boolean;
}

/** A port. While a wire is dragged, one that it does not fit is faint, and the one that a drop would take is largest. */
export function PortHandle({ node, port, side, style, isInner = false }: Props) {
  const key = isInner ? innerPort(port.key) : port.key;
  // From the inside an input of a container is where values come from.
  const isTarget = (side === "in") !== isInner;
  const types = [...(port.types ?? [])].sort();
  const fit = useDecor(({ wire }) => {
    if (wire === null) return undefined;
    const { open, wiring, over } = wire;
    if (open.node === node && open.port === key) return undefined;
    if ((open.side === "source") !== isTarget) return "no";
    if (!wiring.checkOpen(open, node, key).fits) return "no";
    if (over !== node) return "yes";
    const drop = wiring.dropOn(open, node);
    return drop.kind === "fits" && drop.port.key === key ? "next" : "yes";
  });
  return (
    <Handle
      id={key}
      type={isTarget ? "target" : "source"}
      position={
        isQuiet(port) && port.kind === "error" && style === undefined
          ? Position.Bottom
          : SIDES[isInner ? (side === "in" ? "out" : "in") : side]
      }
      className={classes.handle}
      data-kind={port.kind}
      data-type={types.length === 1 && port.kind === "data" ? types[0] : "any"}
      data-quiet={isQuiet(port) && style === undefined ? port.key : undefined}
      data-inner={isInner || undefined}
      data-side={side}
      data-fit={fit}
      title={types.length > 0 && port.kind === "data" ? `${port.label}: ${types.join(" | ")}` : port.label}
      {...(style === undefined ? {} : { style })}
    />
  );
}
