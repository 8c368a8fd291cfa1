import { useCallback, useMemo } from "react";
import type { ExpressionScope } from "../forms/host";
import { SchemaForm } from "../forms/SchemaForm";
import { isFields } from "../forms/schema";
import type { NodeType } from "../model/catalog";
import type { NodeDefinition } from "../model/definition";
import { placeOfNode, textAt, type WorkflowDocument } from "../model/document";
import { nodePath } from "../model/edits/settings";
import { schemasOf } from "../model/ports";
import { useDocument } from "../stores/editor";
import { texts } from "../texts";
import { useFormEdit, useInspector } from "./context";
import classes from "./inspector.module.css";
import { errorsBelow } from "./problems";
import { ownSection } from "./stepFields";
import { wiredFields } from "./wired";

interface ParametersProps {
  readonly node: NodeDefinition;
  readonly type: NodeType | undefined;
  readonly scope: ExpressionScope;
}

/** The parameters of a step, by the widgets and the schema of its type. */
export function StepParameters({ node, type, scope }: ParametersProps) {
  const { isReadOnly, problems, lastRun } = useInspector();
  const document = useDocument();
  const place = `/nodes/${placeOfNode(document, node.id)}/parameters`;
  const errors = useMemo(() => errorsBelow(problems, place), [problems, place]);
  const pathOf = useCallback((one: WorkflowDocument) => [...nodePath(one, node.id), "parameters"], [node.id]);
  const edit = useFormEdit(pathOf);
  const sourceAt = useCallback(
    (path: readonly string[]) => textAt(document, [...pathOf(document), ...path]),
    [document, pathOf],
  );
  const wired = useMemo(() => wiredFields(document, node, type), [document, node, type]);
  const schema = schemasOf(node, type).parameters;
  const widgets = node.ui?.widgets ?? type?.ui?.widgets;
  const hasNothing =
    (widgets ?? []).length === 0 &&
    Object.keys(isFields(schema) && isFields(schema.properties) ? schema.properties : {}).length === 0 &&
    Object.keys(node.parameters ?? {}).length === 0;
  if (hasNothing) {
    return ownSection(node) === null ? <p className={classes.help}>{texts.forms.noSettings}</p> : null;
  }
  return (
    <SchemaForm
      schema={schema}
      widgets={widgets ?? []}
      value={node.parameters ?? undefined}
      results={lastRun?.steps.get(node.id)?.results}
      readOnly={isReadOnly}
      errors={errors}
      expressions={scope}
      wired={wired}
      pointer={place}
      sourceAt={sourceAt}
      onChange={edit}
    />
  );
}
