import { Tabs } from "@mantine/core";
import { useHotkeys, useLocalStorage } from "@mantine/hooks";
import { useLetterKeys } from "../app/globalKeys";
import { usePause, useRun } from "../stores/run";
import { texts } from "../texts";
import { formatCount } from "../values/format";
import { Alerts } from "./Alerts";
import { Announcer } from "./Announcer";
import { Approvals } from "./Approvals";
import { ArtifactsTab } from "./ArtifactsTab";
import { DataTab } from "./DataTab";
import { EventsTab } from "./EventsTab";
import { GraphTab } from "./GraphTab";
import { LogsPanel } from "./logs/LogsPanel";
import { PanelBoundary } from "./Panel";
import classes from "./page.module.css";
import type { RunHeaderData } from "./queries";
import { RunHeader } from "./RunHeader";
import { useDefinition, useRunSearch, useSelectStep, useSetSearch } from "./runPage";
import { Split } from "./Split";
import { StepsTab } from "./StepsTab";
import { TABS, type Tab } from "./search";
import { StepPanel } from "./step/StepPanel";
import { TimelineTab } from "./TimelineTab";

/** With more than that under way nothing turns: it would only cost. */
const MANY = 50;
const SMALL = 20;

function Content({ tab, header }: { readonly tab: Tab; readonly header: RunHeaderData }) {
  switch (tab) {
    case "graph":
      return <GraphTab />;
    case "timeline":
      return <TimelineTab />;
    case "steps":
      return <StepsTab />;
    case "events":
      return <EventsTab />;
    case "data":
      return <DataTab header={header} />;
    case "artifacts":
      return <ArtifactsTab runId={header.runId} />;
  }
}

function TabCount({ tab }: { readonly tab: Tab }) {
  const { nodes } = useDefinition();
  const events = useRun((run) => run.lastEvent);
  if (tab === "steps") return <span className={classes.tabCount}>{nodes.size}</span>;
  if (tab === "events" && events > 0) return <span className={classes.tabCount}>{formatCount(events)}</span>;
  return null;
}

/** The page of a run below the frame. */
export function RunView({ header }: { readonly header: RunHeaderData }) {
  const search = useRunSearch();
  const set = useSetSearch();
  const tab = search.tab ?? "graph";
  const isCalm = useRun((run) => {
    let running = 0;
    for (const node of run.nodes.values()) if (node.status === "running") running += 1;
    return running > MANY;
  });
  // A map of a few steps hides more than it shows.
  const isSmall = useDefinition().nodes.size < SMALL;
  const [hasLogs, setHasLogs] = useLocalStorage({
    key: "astraflow-run-logs",
    defaultValue: true,
    getInitialValueInEffect: false,
  });
  const select = useSelectStep();
  const pause = usePause();
  const isActive = useRun((run) => run.finishedAt === null);
  useLetterKeys([
    ["L", () => setHasLogs(!hasLogs)],
    ["T", () => set({ tab: tab === "timeline" ? undefined : "timeline" })],
    ["P", () => isActive && pause.toggle()],
    ["I", () => search.step !== undefined && set({ part: "input" })],
    ["O", () => search.step !== undefined && set({ part: "output" })],
  ]);
  useHotkeys([["Escape", () => select(null), { preventDefault: false }]]);
  return (
    <div className={classes.page} data-calm={isCalm || undefined} data-small={isSmall || undefined}>
      <Announcer name={header.name ?? header.runId} />
      <RunHeader header={header} />
      <Alerts />
      <Approvals runId={header.runId} />
      <div className={classes.main}>
        <Split name="run-side" direction="row" initial={380} min={280} max={900}>
          <Split name="run-logs" direction="column" initial={220} min={100} max={900} isFixed={!hasLogs}>
            <Tabs
              className={classes.tabs}
              value={tab}
              onChange={(next) => set({ tab: next === "graph" ? undefined : (next as Tab) })}
              keepMounted={false}
            >
              <Tabs.List aria-label={texts.runView.tabs.label}>
                {TABS.map((one) => (
                  <Tabs.Tab key={one} value={one}>
                    {texts.runView.tabs[one]} <TabCount tab={one} />
                  </Tabs.Tab>
                ))}
              </Tabs.List>
              <Tabs.Panel value={tab} className={classes.tabPanel}>
                <PanelBoundary key={tab}>
                  <Content tab={tab} header={header} />
                </PanelBoundary>
              </Tabs.Panel>
            </Tabs>
            <PanelBoundary>
              <LogsPanel isOpen={hasLogs} onToggle={() => setHasLogs(!hasLogs)} />
            </PanelBoundary>
          </Split>
          {search.step === undefined ? null : <StepPanel nodeId={search.step} />}
        </Split>
      </div>
    </div>
  );
}
