/** What is shown of steps and ports while a wire is dragged. */

import { texts } from "../texts";
import { type Decor, type DraggedWire, useDecor } from "./decor";

/** It can take the wire, it would if the wire were dropped now, or it cannot. */
export type WireFit = "yes" | "next" | "no";

export function wireFitOf({ wire }: Pick<Decor, "wire">, node: string): WireFit | undefined {
  if (wire === null) return undefined;
  const drop = wire.wiring.dropOn(wire.open, node);
  if (drop.kind === "canvas" || drop.kind === "back") return undefined;
  if (drop.kind === "refused") return "no";
  return wire.over === node ? "next" : "yes";
}

export const useWireFit = (node: string): WireFit | undefined => useDecor((decor) => wireFitOf(decor, node));

interface Hint {
  readonly fits: boolean;
  readonly text: string;
}

/** What would become of the wire at a port, or at a step whose port is chosen for it; null where nothing is to say. */
export function hintOf(
  { open, wiring, over }: DraggedWire,
  port: { readonly nodeId: string; readonly id?: string | null } | null,
): Hint | null {
  const words = texts.canvas.wire;
  if (port !== null) {
    if (port.nodeId === open.node && port.id === open.port) return null;
    const verdict = wiring.checkOpen(open, port.nodeId, port.id ?? "");
    return verdict.fits ? null : { fits: false, text: verdict.reason };
  }
  const drop = wiring.dropOn(open, over);
  if (drop.kind === "refused") return { fits: false, text: drop.reason };
  if (drop.kind !== "fits") return null;
  const { port: taken, replaces } = drop;
  if (taken.kind !== "data") return { fits: true, text: words.order };
  return { fits: true, text: replaces ? words.replaces(taken.label) : words.connects(taken.label) };
}
