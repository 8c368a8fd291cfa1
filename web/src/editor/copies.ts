/** A workflow made from another one: with ids of its own, and a name that says so. */

import { openDocument, setAt, textOf } from "../model/document";
import { texts } from "../texts";
import { nameOf, withNewIds } from "./parts";

export interface NewWorkflow {
  readonly id: string;
  readonly text: string;
}

export function copyOf(text: string, newId: () => string): NewWorkflow {
  const copy = withNewIds(text, newId);
  const document = openDocument(copy.text);
  const name = texts.editor.list.copyOf(nameOf(document) || texts.editor.untitled);
  return { id: copy.id, text: textOf(setAt(document, ["metadata", "name"], name)) };
}
