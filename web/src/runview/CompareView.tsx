import { Button, Switch } from "@mantine/core";
import { IconArrowsLeftRight, IconChevronLeft } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Fragment, useState } from "react";
import { api, dataOf } from "../api/client";
import type { components } from "../api/schema";
import { Panel } from "../app/PanelStates";
import { StateMark } from "../canvas/StateMark";
import { stepState } from "../model/run/state";
import { texts } from "../texts";
import { formatDuration, shortId } from "../values/format";
import { LeafValue } from "../values/LeafValue";
import compareClasses from "./compare.module.css";
import { Nothing } from "./Panel";
import { StatusPill } from "./StatusPill";
import classes from "./shared.module.css";

type Comparison = components["schemas"]["RunComparison"];
type NodeComparison = components["schemas"]["NodeComparison"];
type Side = components["schemas"]["NodeSide"];
type Change = components["schemas"]["ValueChange"];

const words = texts.runView.compare;

/** Two runs side by side: how each step ended, how long it took, and which values differ. */
export function CompareView({ first, second }: { readonly first: string; readonly second: string }) {
  const query = useQuery({
    queryKey: ["runs", "compare", first, second],
    queryFn: async () =>
      dataOf(await api.GET("/api/v1/runs/{first}/compare/{second}", { params: { path: { first, second } } })),
  });
  const [isShort, setIsShort] = useState(true);
  return (
    <div className={compareClasses.comparePage}>
      <div className={classes.headLine}>
        <Link to="/runs" className={classes.back}>
          <IconChevronLeft size={16} aria-hidden="true" />
          {texts.runView.back}
        </Link>
        <h1 className={classes.title}>{words.title}</h1>
        <span className={classes.grow} />
        <Switch
          size="xs"
          label={words.onlyChanges}
          checked={isShort}
          onChange={(event) => setIsShort(event.currentTarget.checked)}
        />
        <Link to="/runs/compare" search={{ first: second, second: first }} className={classes.plainLink}>
          <Button component="span" variant="default" leftSection={<IconArrowsLeftRight size={14} />}>
            {words.swap}
          </Button>
        </Link>
      </div>
      <Panel query={query}>{(found) => <Differences found={found} isShort={isShort} />}</Panel>
    </div>
  );
}

function RunLink({ runId, status }: { readonly runId: string; readonly status: Comparison["firstStatus"] }) {
  return (
    <span className={compareClasses.runLink}>
      <StatusPill status={status} />
      <Link to="/runs/$runId" params={{ runId }} className={classes.link} title={runId}>
        #{shortId(runId)}
      </Link>
    </span>
  );
}

function Differences({ found, isShort }: { readonly found: Comparison; readonly isShort: boolean }) {
  const nodes = found.nodes.filter((node) => !isShort || !node.isEqual);
  return (
    <>
      {found.inputs.length > 0 && <Changes title={words.inputs} changes={found.inputs} />}
      {nodes.length === 0 ? (
        <Nothing title={words.equal} />
      ) : (
        <table className={compareClasses.compare}>
          <thead>
            <tr>
              <th>{words.step}</th>
              <th>
                <RunLink runId={found.first} status={found.firstStatus} />
              </th>
              <th>
                <RunLink runId={found.second} status={found.secondStatus} />
              </th>
              <th>{words.result}</th>
            </tr>
          </thead>
          <tbody>
            {nodes.map((node) => (
              <Fragment key={node.nodeId}>
                <NodeRow node={node} />
              </Fragment>
            ))}
          </tbody>
        </table>
      )}
      {found.isTruncated && <p className={classes.dim}>{words.truncated}</p>}
    </>
  );
}

function NodeRow({ node }: { readonly node: NodeComparison }) {
  const isDifferent = node.first?.packageVersion !== node.second?.packageVersion;
  const parameters = node.parameters ?? [];
  const results = node.resultChanges ?? [];
  return (
    <>
      <tr data-equal={node.isEqual || undefined}>
        <th scope="row">
          {node.label || node.type}
          <small>{node.type}</small>
        </th>
        <td>
          <SideCell side={node.first} showsPackage={isDifferent} />
        </td>
        <td>
          <SideCell side={node.second} showsPackage={isDifferent} />
        </td>
        <td>{words.words[node.result]}</td>
      </tr>
      {parameters.length + results.length > 0 && (
        <tr className={compareClasses.compareMore}>
          <td colSpan={4}>
            {parameters.length > 0 && <Changes title={words.parameters} changes={parameters} />}
            {results.length > 0 && <Changes title={words.results} changes={results} />}
          </td>
        </tr>
      )}
    </>
  );
}

function SideCell({
  side,
  showsPackage,
}: {
  readonly side: Side | undefined;
  readonly showsPackage: boolean;
}) {
  if (side === undefined) return <>{words.none}</>;
  const isReused = side.attempt === 0 && side.status === "succeeded";
  const state = isReused
    ? "cached"
    : stepState({ status: side.status, waitingFor: null, isReused: false } as Parameters<
        typeof stepState
      >[0]);
  const facts = [
    texts.stepState[state],
    side.durationMs === undefined ? null : formatDuration(side.durationMs),
    side.attempt > 1 ? texts.runView.count(side.attempt, "attempt") : null,
    showsPackage ? `${side.package} ${side.packageVersion}` : null,
  ];
  return (
    <span className={classes.stateCell} data-state={state}>
      <StateMark state={state} size={14} /> {facts.filter((one) => one !== null).join(" · ")}
    </span>
  );
}

function Changes({ title, changes }: { readonly title: string; readonly changes: readonly Change[] }) {
  return (
    <section className={compareClasses.changes}>
      <h2 className={classes.subtitle}>{title}</h2>
      <table>
        <thead>
          <tr>
            <th aria-label={words.step} />
            <th>{words.before}</th>
            <th>{words.after}</th>
          </tr>
        </thead>
        <tbody>
          {changes.map((change) => (
            <tr key={change.pointer}>
              <th scope="row">
                <code>{change.pointer || "/"}</code>
              </th>
              <td data-side="before">
                {change.kind === "added" ? words.none : <LeafValue value={change.before ?? null} />}
              </td>
              <td data-side="after">
                {change.kind === "removed" ? words.none : <LeafValue value={change.after ?? null} />}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
