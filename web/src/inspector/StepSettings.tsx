import { useCallback, useMemo } from "react";
import { expressionScope } from "../forms/expressions/scope";
import type { ExpressionScope } from "../forms/host";
import { SchemaForm } from "../forms/SchemaForm";
import { isFields } from "../forms/schema";
import type { NodeType } from "../model/catalog";
import type { NodeDefinition } from "../model/definition";
import { nodesOf, textAt, type WorkflowDocument } from "../model/document";
import { nodePath } from "../model/edits/settings";
import type { Json } from "../model/json/tree";
import type { Problem } from "../model/validation/problems";
import { useDocument } from "../stores/editor";
import { useFormEdit, useInspector } from "./context";
import classes from "./inspector.module.css";
import { MiddlewareList } from "./MiddlewareList";
import { countBelow, errorsBelow } from "./problems";
import { FoldedSection } from "./Section";
import { StepParameters } from "./StepParameters";
import { countSet, ownSection, type Section, sectionsFor } from "./stepFields";
import { UsableValues } from "./UsableValues";

interface SettingsProps {
  readonly node: NodeDefinition;
  readonly type: NodeType | undefined;
  /** Of the node. */
  readonly pointer: string;
}

/** What the widgets and the schema of the type ask for, then everything that any step can have. */
export function StepSettings({ node, type, pointer }: SettingsProps) {
  const document = useDocument();
  const { catalog, lastRun, problems, isReadOnly } = useInspector();
  const scope = useMemo(
    () => expressionScope(document, catalog, lastRun, { node: node.id }),
    [document, catalog, lastRun, node.id],
  );
  const isMiddleware =
    type?.middleware === true || nodesOf(document).some((one) => one.middlewares?.includes(node.id));
  const own = ownSection(node);
  const sections = sectionsFor(document, node, isMiddleware, type?.executedBy === "scheduler");
  return (
    <div className={classes.stack}>
      <StepParameters node={node} type={type} scope={scope} />
      {own !== null && <SectionForm node={node} section={own} pointer={pointer} scope={scope} />}
      <div>
        {!isReadOnly && <UsableValues id={node.id} />}
        {!isMiddleware && type?.executedBy !== "scheduler" && <MiddlewareList node={node} />}
        {sections.map((section) => (
          <FoldedSection
            key={section.key}
            title={section.title}
            help={section.help}
            places={placesOf(section, pointer)}
            count={countSet(section, node)}
            problems={problemsOf(section, problems, pointer)}
          >
            <SectionForm node={node} section={section} pointer={pointer} scope={scope} />
          </FoldedSection>
        ))}
      </div>
    </div>
  );
}

function problemsOf(section: Section, problems: readonly Problem[], pointer: string): number {
  return placesOf(section, pointer).reduce((count, place) => count + countBelow(problems, place), 0);
}

/** The pointers of what a section sets. */
function placesOf(section: Section, pointer: string): readonly string[] {
  const keys =
    section.path.length > 0 ? [section.path.join("/")] : Object.keys(section.schema.properties as object);
  return keys.map((key) => `${pointer}/${key}`);
}

interface FormProps extends Omit<SettingsProps, "type"> {
  readonly scope: ExpressionScope;
}

function SectionForm({ node, section, pointer, scope }: FormProps & { readonly section: Section }) {
  const { isReadOnly, problems } = useInspector();
  const document = useDocument();
  const place = [pointer, ...section.path].join("/");
  const errors = useMemo(() => formErrors(problems, place, section), [problems, place, section]);
  const key = section.path.join("/");
  const pathOf = useCallback(
    (one: WorkflowDocument) => [...nodePath(one, node.id), ...(key === "" ? [] : key.split("/"))],
    [node.id, key],
  );
  const edit = useFormEdit(pathOf, key === "");
  const sourceAt = useCallback(
    (path: readonly string[]) => textAt(document, [...pathOf(document), ...path]),
    [document, pathOf],
  );
  const value = section.path.reduce<Json | undefined>(
    (here, step) => (isFields(here) ? here[step] : undefined),
    node as unknown as Json,
  );
  return (
    <SchemaForm
      schema={section.schema}
      value={value}
      readOnly={isReadOnly}
      errors={errors}
      expressions={scope}
      expressionFields="marked"
      pointer={place}
      sourceAt={sourceAt}
      onChange={edit}
    />
  );
}

/** A section of the node itself has only some of its fields. */
function formErrors(problems: readonly Problem[], place: string, section: Section) {
  const found = errorsBelow(problems, place);
  if (section.path.length > 0) return found;
  const known = Object.keys(section.schema.properties as object);
  return found.filter((one) =>
    known.some((key) => one.pointer === `/${key}` || one.pointer.startsWith(`/${key}/`)),
  );
}
