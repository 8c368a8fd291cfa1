import { Alert, Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useCatalog } from "../api/workflows";
import { iconOf } from "../canvas/icons";
import { openDocument, textOf } from "../model/document";
import { moveNodes } from "../model/edits/nodes";
import { texts } from "../texts";
import { newId } from "./adding";
import classes from "./editor.module.css";
import { loadLayout } from "./loadLayout";
import { isCrowded, withNewIds } from "./parts";
import { createDraft, listExamples, readExample } from "./requests";
import { messageOf } from "./running";

const words = texts.editor.examples;

/** An example whose steps are drawn over each other is tidied up. */
async function withRoom(text: string): Promise<string> {
  const document = openDocument(text);
  if (!isCrowded(document)) return text;
  const { layoutDocument } = await loadLayout();
  return textOf(moveNodes(document, layoutDocument(document)));
}

/** The examples that come with the installation; one becomes a workflow of one's own. */
export function Examples({ onOpened }: { readonly onOpened: () => void }) {
  const navigate = useNavigate();
  const catalog = useCatalog();
  const [problem, setProblem] = useState<string | null>(null);
  const { data, error } = useQuery({ queryKey: ["examples"], queryFn: listExamples, staleTime: 60_000 });
  const open = async (id: string): Promise<void> => {
    try {
      const made = withNewIds(await readExample(id), newId);
      const workflowId = await createDraft({ id: made.id, text: await withRoom(made.text) });
      onOpened();
      await navigate({ to: "/workflows/$workflowId", params: { workflowId }, search: {} });
    } catch (failure) {
      setProblem(messageOf(failure));
    }
  };
  const message = problem ?? (error === null ? null : error.message);
  const typeOf = (name: string) => catalog.data?.all.find((type) => type.type === name);
  return (
    <>
      {message !== null && (
        <Alert color="red" role="alert">
          {message}
        </Alert>
      )}
      <ul className={classes.examples} aria-label={words.title}>
        {data === undefined &&
          error === null &&
          [1, 2, 3, 4, 5, 6].map((one) => (
            <li key={one}>
              <Skeleton height={104} />
            </li>
          ))}
        {data?.map((example) => (
          <li key={example.id}>
            <button type="button" className={classes.example} onClick={() => void open(example.id)}>
              <strong>{example.name}</strong>
              <span className={classes.exampleText}>{example.description}</span>
              <span className={classes.exampleFoot}>
                <span className={classes.exampleIcons} aria-hidden="true">
                  {example.nodeTypes.slice(0, 5).map((name) => {
                    const Icon = iconOf(typeOf(name)?.icon);
                    return (
                      <span
                        key={name}
                        className={classes.rowTile}
                        style={{ background: typeOf(name)?.color ?? "#6b7280" }}
                      >
                        <Icon size={12} stroke={1.75} />
                      </span>
                    );
                  })}
                </span>
                {example.runnable ? words.steps(example.nodeCount) : words.notRunnable}
              </span>
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}
