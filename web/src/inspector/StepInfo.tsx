import { CopyButton, UnstyledButton } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { NodeDefinition } from "../model/definition";
import { type Port, portsOf, schemasOf } from "../model/ports";
import { texts } from "../texts";
import classes from "./inspector.module.css";
import { Markdown } from "./Markdown";
import { FoldedSection } from "./Section";
import { PortName } from "./StepPorts";
import type { FoundType } from "./useNodeType";
import { ValueView } from "./ValueView";

const words = texts.forms.info;

/** What the step is: its help, its package, its ports. */
export function StepInfo({
  node,
  found: { type },
}: {
  readonly node: NodeDefinition;
  readonly found: FoundType;
}) {
  const ports = portsOf(node, type);
  const schemas = schemasOf(node, type);
  return (
    <div className={classes.stack}>
      {type?.description != null && <p className={classes.text}>{type.description}</p>}
      {type?.help != null && <Markdown text={type.help} />}
      <dl className={classes.facts}>
        <Fact name={words.type}>
          <code>{node.type}</code>
        </Fact>
        {type !== undefined && (
          <>
            <Fact name={words.package}>
              <Link to="/packages">
                {type.package.name} {type.package.version}
              </Link>
            </Fact>
            <Fact name={words.category}>{type.category}</Fact>
            <Fact name={words.runsOn}>
              {type.executedBy === "scheduler" ? words.scheduler : words.worker}
            </Fact>
          </>
        )}
        <Fact name={words.id}>
          <CopyButton value={node.id}>
            {({ copied, copy }) => (
              <UnstyledButton
                className={classes.id}
                onClick={copy}
                aria-label={copied ? texts.copied : words.copyId(node.id.slice(0, 8))}
                title={node.id}
              >
                {copied ? texts.copied : node.id.slice(0, 8)}
              </UnstyledButton>
            )}
          </CopyButton>
        </Fact>
      </dl>
      <PortTable title={words.inputs} ports={ports.inputs} />
      <PortTable title={words.outputs} ports={ports.outputs} />
      <div>
        {schemas.parameters !== undefined && (
          <FoldedSection title={words.parameterSchema} places={[]}>
            <ValueView label={words.parameterSchema} value={schemas.parameters} />
          </FoldedSection>
        )}
        {schemas.results !== undefined && (
          <FoldedSection title={words.resultSchema} places={[]}>
            <ValueView label={words.resultSchema} value={schemas.results} />
          </FoldedSection>
        )}
      </div>
    </div>
  );
}

export function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <div className={classes.fact}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function PortTable({ title, ports }: { readonly title: string; readonly ports: ReadonlyMap<string, Port> }) {
  return (
    <div>
      <h3 className={classes.subtitle}>{title}</h3>
      <ul className={classes.portList}>
        {[...ports.values()].map((port) => (
          <li key={port.key} className={classes.portItem} data-kind={port.kind}>
            <PortName port={port} />
          </li>
        ))}
      </ul>
    </div>
  );
}
