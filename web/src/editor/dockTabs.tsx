/** The tabs of the dock: one component for each, loaded when it is first shown. */

import type { ComponentType, LazyExoticComponent } from "react";
import { chunk, lazyChunk } from "../app/chunks";
import type { NodeCatalog } from "../model/catalog";
import { texts } from "../texts";

export interface DockTabProps {
  readonly catalog: NodeCatalog;
  /** The run that is on the canvas (`RunProvider` is around); null if there is none. */
  readonly runId: string | null;
  readonly onClose: () => void;
}

export interface DockTab {
  readonly id: string;
  readonly label: string;
  /** The key that opens it. */
  readonly key: string | null;
  readonly panel: LazyExoticComponent<ComponentType<DockTabProps>>;
}

const words = texts.editor.dock;
const panels = chunk(() => import("./RunPanels"));

export const DOCK_TABS: readonly DockTab[] = [
  { id: "problems", label: words.problems, key: null, panel: lazyChunk(() => import("./ProblemsPanel")) },
  {
    id: "logs",
    label: words.logs,
    key: "L",
    panel: lazyChunk(async () => ({ default: (await panels()).LogsDock })),
  },
  {
    id: "input",
    label: words.input,
    key: "I",
    panel: lazyChunk(async () => ({ default: (await panels()).InputDock })),
  },
  {
    id: "output",
    label: words.output,
    key: "O",
    panel: lazyChunk(async () => ({ default: (await panels()).OutputDock })),
  },
  {
    id: "timeline",
    label: words.timeline,
    key: "T",
    panel: lazyChunk(async () => ({ default: (await panels()).TimelineDock })),
  },
];
