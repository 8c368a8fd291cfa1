import { type ComponentType, createContext } from "react";
import type { EdgeDefinition } from "../model/definition";

export interface WireChipProps {
  readonly edge: EdgeDefinition;
  readonly x: number;
  readonly y: number;
  /** Somebody points at the wire or has selected it. */
  readonly isNear: boolean;
}

/** What is drawn on wires of a run; nothing without it. */
export const WireChipContext = createContext<ComponentType<WireChipProps> | null>(null);
