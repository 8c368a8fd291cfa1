import { useReactFlow, useStore } from "@xyflow/react";
import { type RefObject, useCallback, useEffect, useMemo, useRef } from "react";
import { FlowCanvas } from "../canvas/FlowCanvas";
import { WireChipContext } from "../canvas/wireChip";
import { useDefinition, useRunSearch, useSelectStep } from "./runPage";
import { WireChip } from "./WireChip";

const FIT = { maxZoom: 1, padding: 0.15 };

/** Panels around the canvas open and close: the graph stays in sight as long as nobody has moved it. */
function Refit({ isMoved }: { readonly isMoved: RefObject<boolean> }) {
  const { fitView } = useReactFlow();
  const width = useStore((flow) => flow.width);
  const height = useStore((flow) => flow.height);
  useEffect(() => {
    if (width > 0 && height > 0 && !isMoved.current) void fitView(FIT);
  }, [width, height, fitView, isMoved]);
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
  const isMoved = useRef(false);
  const onHandMove = useCallback(() => {
    isMoved.current = true;
  }, []);
  return (
    <WireChipContext value={WireChip}>
      <FlowCanvas {...{ document, catalog, selection, onSelect, onHandMove }}>
        <Refit isMoved={isMoved} />
      </FlowCanvas>
    </WireChipContext>
  );
}
