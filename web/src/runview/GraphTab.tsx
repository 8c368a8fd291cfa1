import { useReactFlow, useStore } from "@xyflow/react";
import { useCallback, useEffect, useMemo, useRef } from "react";
import { FlowCanvas } from "../canvas/FlowCanvas";
import { WireChipContext } from "../canvas/wireChip";
import { useDefinition, useRunSearch, useSelectStep } from "./runPage";
import { WireChip } from "./WireChip";

const FIT = { maxZoom: 1, padding: 0.15 };

/** Panels around the canvas open and close: the graph stays in sight as long as nobody has moved it. */
function Refit() {
  const { fitView, getViewport } = useReactFlow();
  const width = useStore((flow) => flow.width);
  const height = useStore((flow) => flow.height);
  const fitted = useRef<string | null>(null);
  useEffect(() => {
    if (width === 0 || height === 0) return;
    const now = JSON.stringify(getViewport());
    if (fitted.current !== null && fitted.current !== now) return;
    void fitView(FIT).then(() => {
      fitted.current = JSON.stringify(getViewport());
    });
  }, [width, height, fitView, getViewport]);
  return null;
}

/** The graph of the run, live. */
export function GraphTab() {
  const { document, catalog, nodes } = useDefinition();
  const { step } = useRunSearch();
  const select = useSelectStep();
  const selection = useMemo(() => new Set(step === undefined ? [] : [step]), [step]);
  const onSelect = useCallback(
    (ids: readonly string[]) => {
      const found = ids.find((id) => nodes.has(id));
      // The canvas tells of an empty selection also while it is drawn; the panel has a button to close it.
      if (found !== undefined && found !== step) select(found);
    },
    [nodes, step, select],
  );
  return (
    <WireChipContext value={WireChip}>
      <FlowCanvas document={document} catalog={catalog} selection={selection} onSelect={onSelect}>
        <Refit />
      </FlowCanvas>
    </WireChipContext>
  );
}
