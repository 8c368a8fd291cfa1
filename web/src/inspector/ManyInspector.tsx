import { Button, Select } from "@mantine/core";
import { IconEye, IconEyeOff, IconTrash } from "@tabler/icons-react";
import { CONTAINER_TYPE } from "../model/definition";
import { nodesOf } from "../model/document";
import { setDisabled, setParent, withMembers } from "../model/edits/nodes";
import { useDocument, useEditorStore } from "../stores/editor";
import { texts } from "../texts";
import { useInspector } from "./context";
import classes from "./inspector.module.css";
import { withoutAll } from "./removal";

const words = texts.forms.many;
const OUTSIDE = "outside";

/** Several things at once: what can be done with all of them. */
export function ManyInspector({ ids }: { readonly ids: ReadonlySet<string> }) {
  const document = useDocument();
  const { isReadOnly } = useInspector();
  const { actions } = useEditorStore();
  const nodes = nodesOf(document).filter((node) => ids.has(node.id));
  const nodeIds = nodes.map((node) => node.id);
  const inside = withMembers(document, nodeIds);
  const containers = nodesOf(document).filter((one) => one.type === CONTAINER_TYPE && !inside.has(one.id));
  const areDisabled = nodes.length > 0 && nodes.every((node) => node.disabled === true);
  const parents = new Set(nodes.map((node) => node.parent ?? OUTSIDE));
  return (
    <>
      <header className={classes.head}>
        <h2 className={classes.name}>{words.title(ids.size)}</h2>
      </header>
      <div className={classes.body}>
        <ul className={classes.names}>
          {nodes.map((node) => (
            <li key={node.id}>{node.label ?? node.type}</li>
          ))}
        </ul>
        {!isReadOnly && (
          <>
            {nodes.length > 0 && (
              <Button
                variant="default"
                leftSection={areDisabled ? <IconEye size={14} /> : <IconEyeOff size={14} />}
                onClick={() =>
                  actions.edit(areDisabled ? words.enable : words.disable, (edited) =>
                    setDisabled(edited, nodeIds, !areDisabled),
                  )
                }
              >
                {areDisabled ? words.enable : words.disable}
              </Button>
            )}
            {nodes.length > 0 && containers.length > 0 && (
              <Select
                label={words.container}
                data={[
                  { value: OUTSIDE, label: words.outside },
                  ...containers.map((one) => ({ value: one.id, label: one.label ?? one.id.slice(0, 8) })),
                ]}
                value={parents.size === 1 ? ([...parents][0] ?? null) : null}
                placeholder={words.several}
                allowDeselect={false}
                onChange={(parent) => {
                  if (parent === null) return;
                  actions.edit(words.move, (edited) =>
                    setParent(edited, nodeIds, parent === OUTSIDE ? null : parent),
                  );
                }}
              />
            )}
            {nodes.length > 0 && containers.length > 0 && (
              <p className={classes.help}>{words.containerHelp}</p>
            )}
            <Button
              variant="default"
              leftSection={<IconTrash size={14} />}
              onClick={() => {
                actions.edit(words.remove, (edited) => withoutAll(edited, ids));
                actions.select([]);
              }}
            >
              {words.remove}
            </Button>
          </>
        )}
      </div>
    </>
  );
}
