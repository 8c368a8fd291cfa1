import { ActionIcon, Tabs, Tooltip } from "@mantine/core";
import { IconChevronDown, IconChevronUp } from "@tabler/icons-react";
import { Suspense } from "react";
import type { NodeCatalog } from "../model/catalog";
import { texts } from "../texts";
import { DOCK_TABS } from "./dockTabs";
import classes from "./editor.module.css";
import { useUi } from "./session";

interface Props {
  readonly catalog: NodeCatalog;
  readonly tab: string;
  readonly onTab: (tab: string) => void;
  readonly isOpen: boolean;
  readonly onToggle: (isOpen?: boolean) => void;
}

/** The panels below the canvas; closed it is a bar. */
export function Dock({ catalog, tab, onTab, isOpen, onToggle }: Props) {
  const problems = useUi((state) => state.problems.length);
  const runId = useUi((state) => state.runId);
  const toggle = isOpen ? texts.editor.regions.dockHide : texts.editor.regions.dockShow;
  const Panel = DOCK_TABS.find((one) => one.id === tab)?.panel;
  return (
    <section className={classes.dock} aria-label={texts.editor.regions.dock}>
      <Tabs
        value={isOpen ? tab : null}
        onChange={(value) => {
          onTab(value ?? tab);
          onToggle(true);
        }}
        keepMounted={false}
        className={classes.dockTabs}
      >
        <div className={classes.dockBar}>
          <Tabs.List>
            {DOCK_TABS.map((one) => (
              <Tabs.Tab key={one.id} value={one.id} onClick={() => onToggle(one.id === tab ? !isOpen : true)}>
                {one.label}
                {one.id === "problems" && problems > 0 && <span className={classes.count}>{problems}</span>}
              </Tabs.Tab>
            ))}
          </Tabs.List>
          <span className={classes.grow} />
          <Tooltip label={toggle}>
            <ActionIcon
              variant="subtle"
              color="gray"
              size="sm"
              aria-label={toggle}
              aria-expanded={isOpen}
              onClick={() => onToggle()}
            >
              {isOpen ? <IconChevronDown size={16} /> : <IconChevronUp size={16} />}
            </ActionIcon>
          </Tooltip>
        </div>
        {DOCK_TABS.map((one) => (
          <Tabs.Panel
            key={one.id}
            value={one.id}
            className={classes.dockPanel}
            hidden={!isOpen || one.id !== tab}
          >
            <Suspense fallback={null}>
              {isOpen && one.id === tab && Panel !== undefined && (
                <Panel catalog={catalog} runId={runId} onClose={() => onToggle(false)} />
              )}
            </Suspense>
          </Tabs.Panel>
        ))}
      </Tabs>
    </section>
  );
}
