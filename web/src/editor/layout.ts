/** The sizes of the regions of the editor, kept in the browser. */

import { useCallback, useState } from "react";

export type Region = "palette" | "inspector" | "dock";

export interface RegionLimits {
  readonly usual: number;
  readonly min: number;
  readonly max: number;
}

export const LIMITS: Readonly<Record<Region, RegionLimits>> = {
  palette: { usual: 220, min: 180, max: 320 },
  inspector: { usual: 320, min: 280, max: 560 },
  dock: { usual: 240, min: 160, max: 640 },
};

interface RegionState {
  readonly size: number;
  readonly isOpen: boolean;
}

export type Layout = Readonly<Record<Region, RegionState>>;

const KEY = "astraflow-editor-regions";

export const within = (region: Region, size: number): number =>
  Math.round(Math.min(LIMITS[region].max, Math.max(LIMITS[region].min, size)));

export function readLayout(kept: string | null): Layout {
  let found: Partial<Record<Region, Partial<RegionState>>> = {};
  try {
    found = (JSON.parse(kept ?? "{}") ?? {}) as typeof found;
  } catch {
    // What cannot be read is as if nothing were kept.
  }
  const one = (region: Region, isOpen: boolean): RegionState => ({
    size: within(region, Number(found[region]?.size) || LIMITS[region].usual),
    isOpen: found[region]?.isOpen ?? isOpen,
  });
  return { palette: one("palette", true), inspector: one("inspector", true), dock: one("dock", false) };
}

export interface LayoutControl {
  readonly layout: Layout;
  readonly resize: (region: Region, size: number) => void;
  readonly reset: (region: Region) => void;
  readonly toggle: (region: Region, isOpen?: boolean) => void;
}

export function useLayout(): LayoutControl {
  const [layout, setLayout] = useState(() => readLayout(localStorage.getItem(KEY)));
  const change = useCallback((region: Region, next: (state: RegionState) => RegionState) => {
    setLayout((before) => {
      const after = { ...before, [region]: next(before[region]) };
      localStorage.setItem(KEY, JSON.stringify(after));
      return after;
    });
  }, []);
  const resize = useCallback(
    (region: Region, size: number) => change(region, (state) => ({ ...state, size: within(region, size) })),
    [change],
  );
  const reset = useCallback(
    (region: Region) => change(region, (state) => ({ ...state, size: LIMITS[region].usual })),
    [change],
  );
  const toggle = useCallback(
    (region: Region, isOpen?: boolean) =>
      change(region, (state) => ({ ...state, isOpen: isOpen ?? !state.isOpen })),
    [change],
  );
  return { layout, resize, reset, toggle };
}
