/** Which parameters of a step are filled by edges. */

import { pointerOf } from "../forms/values";
import type { NodeType } from "../model/catalog";
import type { NodeDefinition } from "../model/definition";
import { edgesOf, nodesOf, type WorkflowDocument } from "../model/document";
import { portsOf } from "../model/ports";
import { texts } from "../texts";

export function labelOfNode(document: WorkflowDocument, id: string): string {
  const node = nodesOf(document).find((one) => one.id === id);
  return node?.label ?? node?.type ?? id;
}

/** By pointers into the parameters: the steps and ports that the values come from. */
export function wiredFields(
  document: WorkflowDocument,
  node: NodeDefinition,
  type: NodeType | undefined,
): ReadonlyMap<string, string> {
  const { inputs } = portsOf(node, type);
  const sources = new Map<string, string[]>();
  for (const { source, target } of edgesOf(document)) {
    const port = target.node === node.id ? inputs.get(target.port ?? "trigger") : undefined;
    if (port === undefined || port.kind !== "data" || port.path.length === 0) continue;
    const name = texts.forms.input.from(labelOfNode(document, source.node), source.port ?? "done");
    const place = pointerOf(port.path);
    sources.set(place, [...(sources.get(place) ?? []), name]);
  }
  return new Map([...sources].map(([place, names]) => [place, names.join(", ")]));
}
