import { ActionIcon, Button, Tooltip } from "@mantine/core";
import { IconRepeat, IconX } from "@tabler/icons-react";
import { useEffect, useState } from "react";
import { Panel } from "../../app/PanelStates";
import { useMay } from "../../app/session";
import { StateMark } from "../../canvas/StateMark";
import { stepState } from "../../model/run/state";
import { useRun, useStep } from "../../stores/run";
import { texts } from "../../texts";
import { tick } from "../../tour/tour";
import { PanelBoundary } from "../Panel";
import { useNodeDetail } from "../queries";
import { RerunDialog } from "../RerunDialog";
import { useDefinition, useRunId, useRunSearch, useSelectStep } from "../runPage";
import { Breadcrumbs } from "./Breadcrumbs";
import { StepBody } from "./StepBody";
import classes from "./step.module.css";

/** The step that is selected: what it was given, what it did, and what came of it. */
export function StepPanel({ nodeId }: { readonly nodeId: string }) {
  const words = texts.runView.step;
  const runId = useRunId();
  const { scope } = useRunSearch();
  const select = useSelectStep();
  const definition = useDefinition();
  const node = useStep(scope === undefined ? nodeId : `${scope}/${nodeId}`);
  const isOver = useRun((run) => run.finishedAt !== null);
  const seen = `${node?.status ?? ""} ${node?.attempt ?? 0} ${node?.failures ?? 0} ${node?.hasResult ?? false}`;
  const query = useNodeDetail(runId, nodeId, scope, seen);
  const state = stepState(node);
  const own = definition.nodes.has(nodeId);
  const label = own
    ? definition.labelOf(nodeId)
    : query.data?.label || query.data?.type || nodeId.slice(0, 8);
  const [isRerunning, setIsRerunning] = useState(false);
  const mayStart = useMay("start");
  useEffect(() => tick("look"), []);
  // A state that only the API has heard of, as that of an old item of a map.
  const shown = node === undefined && query.data !== undefined ? query.data.status : null;
  return (
    <aside className={classes.side} aria-label={words.label(label)}>
      <div className={classes.sideHead}>
        <StateMark state={shown === null ? state : stateOf(shown)} size={18} />
        <h2 className={classes.sideTitle} title={label}>
          {label}
        </h2>
        {mayStart && isOver && own && scope === undefined && (
          <Button
            variant="default"
            size="compact-xs"
            leftSection={<IconRepeat size={14} />}
            onClick={() => setIsRerunning(true)}
          >
            {texts.runView.actions.rerunFrom}
          </Button>
        )}
        <Tooltip label={words.close}>
          <ActionIcon variant="subtle" color="gray" aria-label={words.close} onClick={() => select(null)}>
            <IconX size={16} />
          </ActionIcon>
        </Tooltip>
      </div>
      {scope !== undefined && <Breadcrumbs scope={scope} />}
      <PanelBoundary key={`${scope ?? ""}/${nodeId}`}>
        <Panel query={query}>
          {(detail) => <StepBody detail={detail} node={node} scope={scope} seen={seen} />}
        </Panel>
      </PanelBoundary>
      {isRerunning && <RerunDialog runId={runId} nodeId={nodeId} onClose={() => setIsRerunning(false)} />}
    </aside>
  );
}

const stateOf = (status: Parameters<typeof asNode>[0]) => stepState(asNode(status));
const asNode = (
  status:
    | "pending"
    | "ready"
    | "dispatched"
    | "running"
    | "retrying"
    | "waiting"
    | "succeeded"
    | "failed"
    | "skipped"
    | "cancelled",
) => ({ status, waitingFor: null, isReused: false }) as Parameters<typeof stepState>[0] & object;
