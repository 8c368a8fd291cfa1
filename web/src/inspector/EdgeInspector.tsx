import { Button } from "@mantine/core";
import { IconArrowRight, IconTrash } from "@tabler/icons-react";
import { useCallback, useMemo } from "react";
import { sourceHandle, targetHandle } from "../canvas/flow";
import { expressionScope } from "../forms/expressions/scope";
import { SchemaForm } from "../forms/SchemaForm";
import { edgesOf } from "../model/document";
import { disconnect } from "../model/edits/edges";
import type { Json } from "../model/json/tree";
import { useDocument, useEditorStore } from "../stores/editor";
import { texts } from "../texts";
import { useFormEdit, useInspector } from "./context";
import classes from "./inspector.module.css";
import { errorsBelow } from "./problems";
import { StepLink } from "./StepPorts";

const words = texts.forms.edge;
const SCHEMA: Json = {
  type: "object",
  properties: {
    when: {
      type: "string",
      "x-control": "condition",
      title: words.when.title,
      description: words.when.description,
    },
  },
};

/** An edge: its ends, and the condition under which it leads on. */
export function EdgeInspector({ place }: { readonly place: number }) {
  const document = useDocument();
  const { catalog, lastRun, problems, isReadOnly } = useInspector();
  const { actions } = useEditorStore();
  const edge = edgesOf(document)[place];
  const scope = useMemo(
    () =>
      edge === undefined
        ? null
        : expressionScope(document, catalog, lastRun, { node: edge.source.node, edge }),
    [document, catalog, lastRun, edge],
  );
  const pointer = `/edges/${place}`;
  const errors = useMemo(() => errorsBelow(problems, pointer), [problems, pointer]);
  const pathOf = useCallback(() => ["edges", place], [place]);
  const edit = useFormEdit(pathOf);
  if (edge === undefined) return null;
  return (
    <>
      <header className={classes.head}>
        <h2 className={classes.name}>{words.title}</h2>
      </header>
      <div className={classes.body}>
        <div className={classes.ends}>
          <StepLink id={edge.source.node} port={sourceHandle(edge)} />
          <IconArrowRight size={14} aria-hidden="true" />
          <StepLink id={edge.target.node} port={targetHandle(edge)} />
        </div>
        <SchemaForm
          schema={SCHEMA}
          value={edge as unknown as Json}
          readOnly={isReadOnly}
          errors={errors}
          expressions={scope}
          pointer={pointer}
          onChange={edit}
        />
        {!isReadOnly && (
          <Button
            variant="default"
            leftSection={<IconTrash size={14} />}
            onClick={() => {
              actions.edit(words.remove, (edited) => disconnect(edited, new Set([place])));
              actions.select([]);
            }}
          >
            {words.remove}
          </Button>
        )}
      </div>
    </>
  );
}
