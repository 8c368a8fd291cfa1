import { Button } from "@mantine/core";
import { IconBoxMultiple, IconX } from "@tabler/icons-react";
import { useCallback, useMemo } from "react";
import { CANVAS_COLORS } from "../canvas/colors";
import { SchemaForm } from "../forms/SchemaForm";
import { EDITOR_KEY } from "../model/definition";
import { groupsOf, nodesOf, type WorkflowDocument } from "../model/document";
import { leaveGroups, removeGroup } from "../model/edits/canvas";
import type { Json } from "../model/json/tree";
import { useDocument, useEditorStore } from "../stores/editor";
import { texts } from "../texts";
import { useFormEdit, useInspector } from "./context";
import classes from "./inspector.module.css";

const words = texts.forms.group;
const SCHEMA: Json = {
  type: "object",
  properties: {
    label: { type: "string", maxLength: 200, title: words.label.title, description: words.label.description },
    color: {
      type: "string",
      enum: [...CANVAS_COLORS],
      "x-labels": CANVAS_COLORS.map((color) => words.colorNames[color]),
      title: words.color.title,
      description: words.color.description,
    },
  },
};

/** A group of steps on the canvas. */
export function GroupInspector({ id }: { readonly id: string }) {
  const document = useDocument();
  const { isReadOnly } = useInspector();
  const { actions } = useEditorStore();
  const group = useMemo(() => groupsOf(document).find((one) => one.id === id), [document, id]);
  const ids = new Set(group?.nodes);
  const nodes = nodesOf(document).filter((node) => ids.has(node.id));
  const pathOf = useCallback(
    (edited: WorkflowDocument) => [EDITOR_KEY, "groups", groupsOf(edited).findIndex((one) => one.id === id)],
    [id],
  );
  const edit = useFormEdit(pathOf);
  return (
    <>
      <header className={classes.head}>
        <h2 className={classes.name}>{words.title}</h2>
      </header>
      <div className={classes.body}>
        <SchemaForm
          schema={SCHEMA}
          value={group as unknown as Json}
          readOnly={isReadOnly}
          onChange={(value, change) =>
            // A group without a name is still a group.
            edit(value, change.path[0] === "label" ? { ...change, value: change.value ?? "" } : change)
          }
        />
        <h3 className={classes.help}>{words.steps}</h3>
        <ul className={classes.names}>
          {nodes.map((node) => (
            <li key={node.id} className={classes.groupStep}>
              <Button
                variant="subtle"
                size="compact-sm"
                color="gray"
                onClick={() => actions.select([node.id])}
              >
                {node.label ?? node.type}
              </Button>
              {!isReadOnly && (
                <Button
                  variant="subtle"
                  size="compact-sm"
                  color="gray"
                  aria-label={words.leave(node.label ?? node.type)}
                  onClick={() =>
                    actions.edit(words.leave(node.label ?? node.type), (edited) =>
                      leaveGroups(edited, new Set([node.id])),
                    )
                  }
                >
                  <IconX size={14} />
                </Button>
              )}
            </li>
          ))}
        </ul>
        {!isReadOnly && (
          <Button
            variant="default"
            leftSection={<IconBoxMultiple size={14} />}
            onClick={() => {
              actions.edit(words.ungroup, (edited) => removeGroup(edited, id));
              actions.select([...ids]);
            }}
          >
            {words.ungroup}
          </Button>
        )}
      </div>
    </>
  );
}
