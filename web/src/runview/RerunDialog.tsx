import { Button, Group, Modal } from "@mantine/core";
import { IconBolt, IconRepeat } from "@tabler/icons-react";
import { useMemo, useState } from "react";
import type { NodeDefinition } from "../model/definition";
import { edgesOf, valueAt } from "../model/document";
import type { Json } from "../model/json/tree";
import { schemasOf } from "../model/ports";
import { useRun } from "../stores/run";
import { texts } from "../texts";
import classes from "./dialogs.module.css";
import { type Fields, ParametersField } from "./ParametersField";
import { type RerunRequest, useRunActions } from "./queries";
import { planRerun } from "./rerunPlan";
import { type RunDefinition, useDefinition } from "./runPage";
import shared from "./shared.module.css";

interface Props {
  readonly runId: string;
  /** The step to begin with; without one the inputs of the run can be changed. */
  readonly nodeId?: string;
  readonly inputs?: object;
  readonly onClose: () => void;
}

/** The members that differ. A member that was taken away stays as it was: there is no way to say that. */
function changesOf(before: Fields, after: Fields): Fields {
  const changed = Object.entries(after).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]),
  );
  return Object.fromEntries(changed);
}

/** What can be changed: the parameters of a step, or the declared inputs of the workflow. */
function shapeOf(definition: RunDefinition, node: NodeDefinition | undefined) {
  if (node !== undefined) {
    const type = definition.typeOf(node);
    return { schema: schemasOf(node, type).parameters, widgets: node.ui?.widgets ?? type?.ui?.widgets };
  }
  const declared = valueAt(definition.document, ["inputs"]);
  const inputs = Object.entries((declared ?? {}) as Readonly<Record<string, { readonly schema?: Json }>>);
  const properties = Object.fromEntries(inputs.map(([name, one]) => [name, one.schema ?? {}]));
  return { schema: { type: "object", properties } as Json, widgets: undefined };
}

function Steps({ ids, definition }: { readonly ids: readonly string[]; readonly definition: RunDefinition }) {
  return (
    <span className={classes.stepChips}>
      {ids.map((id) => (
        <span key={id}>{definition.labelOf(id)}</span>
      ))}
    </span>
  );
}

/** Repeat a run from a step on, or with other inputs. It says what runs again and what is taken over. */
export function RerunDialog({ runId, nodeId, inputs, onClose }: Props) {
  const words = texts.runView.rerun;
  const definition = useDefinition();
  const nodes = useRun((run) => run.nodes);
  const node = nodeId === undefined ? undefined : definition.nodes.get(nodeId);
  const before = ((node === undefined ? inputs : node.parameters) ?? {}) as Fields;
  const [after, setAfter] = useState<Fields | null>(before);
  const { rerun } = useRunActions(runId);
  const changes = after === null ? {} : changesOf(before, after);
  const names = Object.keys(changes);
  const plan = useMemo(
    () =>
      planRerun({
        nodes: [...definition.nodes.values()],
        edges: edgesOf(definition.document),
        mode: nodeId === undefined ? "all" : "from",
        from: nodeId === undefined ? [] : [nodeId],
        hasSucceeded: (id) => nodes.get(id)?.status === "succeeded",
      }),
    [definition, nodeId, nodes],
  );
  const request = (): RerunRequest => {
    if (nodeId === undefined)
      return names.length === 0 ? { mode: "all" } : { mode: "all", inputs: after as never };
    const parameters =
      names.length === 0 ? {} : { parameters: { [nodeId]: changes as Record<string, never> } };
    return { mode: "from", nodes: [nodeId], ...parameters };
  };
  const shape = useMemo(() => shapeOf(definition, node), [definition, node]);
  const label = nodeId === undefined ? "" : definition.labelOf(nodeId);
  return (
    <Modal
      opened
      onClose={onClose}
      size="lg"
      title={nodeId === undefined ? words.titleAll : words.title(label)}
    >
      <div className={classes.dialog}>
        <ParametersField
          label={nodeId === undefined ? words.inputs : words.parameters(label)}
          schema={shape.schema}
          widgets={shape.widgets}
          value={after ?? before}
          onChange={setAfter}
          hasExpressions={nodeId !== undefined}
        />
        <p className={shared.dim}>{names.length === 0 ? words.unchanged : words.changed(names)}</p>
        <div className={classes.plan}>
          <IconRepeat size={16} aria-hidden="true" />
          <div>
            <strong>{words.repeated(plan.repeated.length)}</strong>
            <Steps ids={plan.repeated} definition={definition} />
          </div>
          {plan.kept.length > 0 && (
            <>
              <IconBolt size={16} aria-hidden="true" />
              <div>
                <strong>{words.kept(plan.kept.length)}</strong>
                <Steps ids={plan.kept} definition={definition} />
              </div>
            </>
          )}
        </div>
        <Group justify="flex-end" gap={8}>
          <Button variant="default" onClick={onClose}>
            {words.cancel}
          </Button>
          <Button
            disabled={after === null}
            loading={rerun.isPending}
            onClick={() => rerun.mutate(request(), { onSuccess: onClose })}
          >
            {words.start}
          </Button>
        </Group>
      </div>
    </Modal>
  );
}
