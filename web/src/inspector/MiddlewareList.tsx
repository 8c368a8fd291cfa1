import { Menu } from "@mantine/core";
import { useMemo } from "react";
import { iconOf } from "../canvas/icons";
import { RowTools } from "../forms/controls/ListControls";
import { expressionScope } from "../forms/expressions/scope";
import type { NodeType } from "../model/catalog";
import type { NodeDefinition } from "../model/definition";
import { moveAt, nodesOf, placeOfNode } from "../model/document";
import { addMiddleware, addNode, removeNodes } from "../model/edits/nodes";
import { nodePath } from "../model/edits/settings";
import { useDocument, useEditorStore } from "../stores/editor";
import { texts } from "../texts";
import { AddMenu } from "./AddMenu";
import { useInspector } from "./context";
import classes from "./inspector.module.css";
import { countBelow } from "./problems";
import { Fold, FoldedSection } from "./Section";
import { StepParameters } from "./StepParameters";
import { useNodeType } from "./useNodeType";

const words = texts.forms.middleware;

/** The nodes around a step, the outermost first. */
export function MiddlewareList({ node }: { readonly node: NodeDefinition }) {
  const document = useDocument();
  const { isReadOnly, problems } = useInspector();
  const { actions } = useEditorStore();
  const ids = node.middlewares ?? [];
  const all = new Map(nodesOf(document).map((one) => [one.id, one]));
  const chain = ids.flatMap((id) => all.get(id) ?? []);
  const wrong = chain.reduce(
    (count, one) => count + countBelow(problems, `/nodes/${placeOfNode(document, one.id)}`),
    0,
  );
  return (
    <FoldedSection
      title={words.title}
      places={chain.map((one) => `/nodes/${placeOfNode(document, one.id)}`)}
      help={words.help}
      count={ids.length}
      problems={wrong}
    >
      <ol className={classes.chain}>
        {chain.map((one, place) => (
          <li key={one.id} className={classes.chainItem}>
            <MiddlewareItem node={one} />
            {!isReadOnly && (
              <span className={classes.chainTools}>
                <RowTools
                  place={place}
                  count={chain.length}
                  name={one.label ?? one.type}
                  onMove={(to) =>
                    actions.edit(words.move, (edited) =>
                      moveAt(edited, [...nodePath(edited, node.id), "middlewares"], place, to),
                    )
                  }
                  onRemove={() => actions.edit(words.remove, (edited) => removeNodes(edited, [one.id]))}
                />
              </span>
            )}
          </li>
        ))}
      </ol>
      {!isReadOnly && <AddMiddleware host={node} place={ids.length} />}
    </FoldedSection>
  );
}

function MiddlewareItem({ node }: { readonly node: NodeDefinition }) {
  const document = useDocument();
  const { catalog, lastRun } = useInspector();
  const { type } = useNodeType(node);
  const scope = useMemo(
    () => expressionScope(document, catalog, lastRun, { node: node.id }),
    [document, catalog, lastRun, node.id],
  );
  const Icon = iconOf(type?.icon);
  return (
    <Fold
      places={[`/nodes/${placeOfNode(document, node.id)}`]}
      isOpen={false}
      className={classes.chainDetails}
      head={
        <summary className={classes.chainSummary}>
          <Icon size={14} />
          <span>{node.label ?? type?.label ?? node.type}</span>
        </summary>
      }
    >
      <div className={classes.chainBody}>
        <StepParameters node={node} type={type} scope={scope} />
      </div>
    </Fold>
  );
}

function AddMiddleware({ host, place }: { readonly host: NodeDefinition; readonly place: number }) {
  const { catalog } = useInspector();
  const { actions } = useEditorStore();
  const types = catalog.all.filter((one) => one.middleware === true);
  const add = (type: NodeType): void => {
    const id = crypto.randomUUID();
    const at = host.position ?? { x: 0, y: 0 };
    actions.edit(words.add, (document) => {
      const made = addNode(document, {
        id,
        type: type.type,
        package: { name: type.package.name, version: type.package.version },
        label: type.label,
        position: { x: at.x, y: at.y - 80 },
      });
      return addMiddleware(made, host.id, id, place);
    });
  };
  return (
    <AddMenu label={words.add}>
      {types.map((type) => (
        <Menu.Item key={`${type.package.name}/${type.type}`} onClick={() => add(type)}>
          {type.label}
          <div className={classes.help}>{type.description}</div>
        </Menu.Item>
      ))}
    </AddMenu>
  );
}
