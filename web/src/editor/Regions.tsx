import { ActionIcon, Drawer, Tooltip } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import {
  IconLayoutSidebarLeftExpand,
  IconLayoutSidebarRightCollapse,
  IconLayoutSidebarRightExpand,
} from "@tabler/icons-react";
import { type ReactNode, useEffect } from "react";
import { Inspector } from "../inspector/Inspector";
import type { NodeCatalog } from "../model/catalog";
import { useEditor } from "../stores/editor";
import { texts } from "../texts";
import { Dock } from "./Dock";
import { EditorCanvas } from "./EditorCanvas";
import { EmptyCanvas } from "./EmptyCanvas";
import classes from "./editor.module.css";
import type { LayoutControl } from "./layout";
import { Palette } from "./Palette";
import { RunStrip } from "./RunStrip";
import { Splitter } from "./Splitter";
import { useSession, useUi } from "./session";

interface Props {
  readonly catalog: NodeCatalog;
  readonly control: LayoutControl;
  readonly lastRunId: string | null;
}

const NOW = { getInitialValueInEffect: false } as const;
const words = texts.editor.regions;

/** The palette, the canvas, the dock and the inspector. In a narrow window the outer ones give way. */
export function Regions({ catalog, control, lastRunId }: Props) {
  const { layout, resize, reset, toggle } = control;
  const isReadOnly = useEditor((state) => state.isReadOnly);
  const hasRoom = useMediaQuery("(min-width: 1100px)", true, NOW);
  const hasInspector = useMediaQuery("(min-width: 900px)", true, NOW);
  const session = useSession();
  const tab = useUi((state) => state.tab);
  const isPaletteOpen = layout.palette.isOpen && hasRoom && !isReadOnly;
  const inspector = <InspectorRegion catalog={catalog} lastRunId={lastRunId} />;
  return (
    <div className={classes.regions}>
      {isPaletteOpen && (
        <>
          <div style={{ width: layout.palette.size }} className={classes.region}>
            <Palette catalog={catalog} onCollapse={() => toggle("palette", false)} />
          </div>
          <Splitter
            region="palette"
            size={layout.palette.size}
            label={words.resizePalette}
            growsForward
            onResize={(size) => resize("palette", size)}
            onReset={() => reset("palette")}
          />
        </>
      )}
      <div className={classes.middle}>
        <div className={classes.stage}>
          <EditorCanvas catalog={catalog} />
          <EmptyCanvas />
          <RunStrip />
          {!isPaletteOpen && hasRoom && !isReadOnly && (
            <Corner side="left" label={texts.editor.palette.expand} onClick={() => toggle("palette", true)} />
          )}
          {hasInspector && (
            <Corner
              side="right"
              isOpen={layout.inspector.isOpen}
              label={layout.inspector.isOpen ? words.inspectorHide : words.inspectorShow}
              onClick={() => toggle("inspector")}
            />
          )}
        </div>
        {layout.dock.isOpen && (
          <Splitter
            region="dock"
            size={layout.dock.size}
            label={words.resizeDock}
            growsForward={false}
            onResize={(size) => resize("dock", size)}
            onReset={() => reset("dock")}
          />
        )}
        <div style={{ height: layout.dock.isOpen ? layout.dock.size : 32 }} className={classes.dockRegion}>
          <Dock
            catalog={catalog}
            tab={tab}
            onTab={(next) => session.ui.setState({ tab: next })}
            isOpen={layout.dock.isOpen}
            onToggle={(isOpen) => toggle("dock", isOpen)}
          />
        </div>
      </div>
      {hasInspector && layout.inspector.isOpen && (
        <>
          <Splitter
            region="inspector"
            size={layout.inspector.size}
            label={words.resizeInspector}
            growsForward={false}
            onResize={(size) => resize("inspector", size)}
            onReset={() => reset("inspector")}
          />
          <div style={{ width: layout.inspector.size }} className={classes.region}>
            {inspector}
          </div>
        </>
      )}
      {!hasInspector && <InspectorDrawer>{inspector}</InspectorDrawer>}
      <OpenOnDemand control={control} />
    </div>
  );
}

/** Enter on a step opens the inspector if it is hidden; the keys of the dock open that. */
function OpenOnDemand({ control }: { readonly control: LayoutControl }) {
  const field = useUi((state) => state.field);
  const asked = useUi((state) => state.dockAsked);
  const { toggle } = control;
  useEffect(() => {
    if (asked > 0) toggle("dock", true);
  }, [asked, toggle]);
  useEffect(() => {
    if (field !== null) toggle("inspector", true);
  }, [field, toggle]);
  return null;
}

function InspectorRegion({ catalog, lastRunId }: Pick<Props, "catalog" | "lastRunId">) {
  const problems = useUi((state) => state.problems);
  return (
    <aside className={classes.inspector} aria-label={words.inspector}>
      <Inspector catalog={catalog} problems={problems} lastRunId={lastRunId} />
    </aside>
  );
}

/** In a narrow window the inspector comes with Enter, and goes again. */
function InspectorDrawer({ children }: { readonly children: ReactNode }) {
  const session = useSession();
  const isOpen = useUi((state) => state.field !== null);
  return (
    <Drawer
      opened={isOpen}
      onClose={() => session.ui.setState({ field: null })}
      position="right"
      size={320}
      title={words.inspector}
    >
      {children}
    </Drawer>
  );
}

interface CornerProps {
  readonly side: "left" | "right";
  readonly isOpen?: boolean;
  readonly label: string;
  readonly onClick: () => void;
}

function Corner({ side, isOpen = false, label, onClick }: CornerProps) {
  const Icon =
    side === "left"
      ? IconLayoutSidebarLeftExpand
      : isOpen
        ? IconLayoutSidebarRightCollapse
        : IconLayoutSidebarRightExpand;
  return (
    <Tooltip label={label}>
      <ActionIcon
        variant="default"
        className={classes.corner}
        data-side={side}
        aria-label={label}
        onClick={onClick}
      >
        <Icon size={16} stroke={1.75} />
      </ActionIcon>
    </Tooltip>
  );
}
