import { Button } from "@mantine/core";
import { useCallback, useMemo, useState } from "react";
import { createDecor, DecorContext, type Difference, NO_DECOR } from "../canvas/decor";
import { FlowCanvas } from "../canvas/FlowCanvas";
import type { NodeCatalog } from "../model/catalog";
import type { WorkflowDocument } from "../model/document";
import { texts } from "../texts";
import { Banner } from "./Banners";
import { DifferenceList } from "./DifferenceList";
import { differencesOf, unionOf } from "./differences";
import classes from "./editor.module.css";

interface Props {
  readonly before: WorkflowDocument;
  readonly after: WorkflowDocument;
  readonly names: readonly [string, string];
  readonly catalog: NodeCatalog;
  readonly onClose: () => void;
}

const KINDS: readonly Difference[] = ["added", "removed", "changed", "moved"];
const NOTHING: ReadonlySet<string> = new Set();

/** Two documents as one graph: what was added, removed, changed and moved, with a list of it. */
export function CompareView({ before, after, names, catalog, onClose }: Props) {
  const differences = useMemo(() => differencesOf(before, after), [before, after]);
  const union = useMemo(() => unionOf(before, after), [before, after]);
  const decor = useMemo(() => {
    const store = createDecor();
    const marks = new Map<string, Difference>(differences.edges);
    for (const step of differences.steps) marks.set(step.id, step.kind);
    store.setState({ ...NO_DECOR, differences: marks });
    return store;
  }, [differences]);
  const [selection, setSelection] = useState(NOTHING);
  const onSelect = useCallback((ids: readonly string[]) => setSelection(new Set(ids)), []);
  const words = texts.editor;
  return (
    <section className={classes.compare} aria-label={words.differences.title}>
      <Banner kind="info" text={words.banners.comparing(...names)}>
        <ul className={classes.legend}>
          {KINDS.map((kind) => (
            <li key={kind} data-difference={kind}>
              {words.differences.kinds[kind]}
            </li>
          ))}
        </ul>
        <Button variant="default" onClick={onClose}>
          {words.banners.leaveCompare}
        </Button>
      </Banner>
      <div className={classes.compareBody}>
        <div className={classes.canvas}>
          <DecorContext value={decor}>
            <FlowCanvas document={union} catalog={catalog} selection={selection} onSelect={onSelect} />
          </DecorContext>
        </div>
        <DifferenceList differences={differences} selection={selection} onSelect={(id) => onSelect([id])} />
      </div>
    </section>
  );
}
