import { Anchor } from "@mantine/core";
import type { ReactNode } from "react";
import { shortText } from "../forms/values";
import type { Json } from "../model/json/tree";
import type { Port } from "../model/ports";
import { useDocument, useEditorStore } from "../stores/editor";
import { texts } from "../texts";
import classes from "./inspector.module.css";
import { labelOfNode } from "./wired";

interface ListProps {
  readonly title: string;
  readonly ports: Iterable<Port>;
  /** What is said of a port below its name. */
  readonly children: (port: Port) => ReactNode;
}

/** The ports of one side of a step. */
export function PortList({ title, ports, children }: ListProps) {
  return (
    <>
      <h3 className={classes.subtitle}>{title}</h3>
      <ul className={classes.portList}>
        {[...ports].map((port) => (
          <li key={port.key} className={classes.portItem} data-kind={port.kind}>
            <PortName port={port} />
            {children(port)}
          </li>
        ))}
      </ul>
    </>
  );
}

export function PortName({ port }: { readonly port: Port }) {
  const types = [...(port.types ?? [])].sort().join(" | ");
  return (
    <div className={classes.portName}>
      <span>{port.label}</span>
      {types !== "" && port.kind === "data" && <span className={classes.portType}>{types}</span>}
    </div>
  );
}

/** The other ends of the wires of a port; a click selects the step there. */
export function WireEnds({
  ends,
}: {
  readonly ends: readonly { readonly node: string; readonly port: string }[];
}) {
  return (
    <>
      {ends.map(({ node, port }) => (
        <StepLink key={`${node}:${port}`} id={node} port={port} />
      ))}
    </>
  );
}

/** A step by its label; a click selects it. */
export function StepLink({ id, port }: { readonly id: string; readonly port?: string }) {
  const document = useDocument();
  const { actions } = useEditorStore();
  const name = labelOfNode(document, id);
  return (
    <Anchor
      component="button"
      type="button"
      size="xs"
      className={classes.link}
      onClick={() => actions.select([id])}
    >
      {port === undefined ? name : texts.forms.input.from(name, port)}
    </Anchor>
  );
}

/** A value in one line. */
export function ShortValue({ value }: { readonly value: Json }) {
  return (
    <code className={classes.value} title={shortText(value)}>
      {shortText(value)}
    </code>
  );
}
