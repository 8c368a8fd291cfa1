import { type DragEvent, type MouseEvent, type ReactNode, useEffect, useMemo } from "react";
import { DecorContext } from "../canvas/decor";
import { FlowCanvas } from "../canvas/FlowCanvas";
import type { CanvasEdits } from "../canvas/gestures";
import type { NodeCatalog } from "../model/catalog";
import { CONTAINER_TYPE } from "../model/definition";
import { nodesOf } from "../model/document";
import { changeNote } from "../model/edits/canvas";
import { useDocument, useEditor } from "../stores/editor";
import { texts } from "../texts";
import { addByDrop, type DropPlace } from "./adding";
import { CanvasBridge } from "./CanvasBridge";
import { connectBy, moved, reconnect, rename, writeNote } from "./changing";
import classes from "./editor.module.css";
import { importFile } from "./files";
import { colorGroup } from "./grouping";
import { documentOf, type EditorSession, notify, type Point, useSession } from "./session";
import { TYPE_DATA } from "./TypeRow";

function editsOf(session: EditorSession): CanvasEdits {
  return {
    onMove: (move) => moved(session, move),
    onConnect: (connection) => connectBy(session, connection),
    onReconnect: (edge, connection) => reconnect(session, edge, connection),
    onWireRefused: (reason) => notify(session, reason),
    onWireDropped: (open, screen) => {
      const at = session.canvas.current?.toFlow(screen) ?? null;
      session.ui.setState({ quickAdd: { screen, at, open } });
    },
  };
}

function actionsOf(session: EditorSession) {
  const { actions } = session.editor;
  const { did } = texts.editor;
  return {
    select: (id: string) => actions.select([id]),
    rename: (id: string, label: string | null) => rename(session, id, label),
    writeNote: (id: string, text: string | null) => writeNote(session, id, text),
    resizeNote: (id: string, { x, y, width, height }: Point & { width: number; height: number }) =>
      actions.edit(did.resizeNote, (document) =>
        changeNote(document, id, {
          position: { x, y },
          width: Math.round(width),
          height: Math.round(height),
        }),
      ),
    colorNote: (id: string, color: string) =>
      actions.edit(did.colorNote, (document) => changeNote(document, id, { color })),
    colorGroup: (id: string, color: string) => colorGroup(session, id, color),
  };
}

const idAt = (target: EventTarget | null, kind: "node" | "edge"): string | null =>
  target instanceof Element
    ? (target.closest<HTMLElement>(`.react-flow__${kind}`)?.dataset.id ?? null)
    : null;

function dropPlace(session: EditorSession, event: DragEvent): DropPlace {
  const node = idAt(event.target, "node");
  const found = nodesOf(documentOf(session)).find((one) => one.id === node);
  return {
    at: session.canvas.current?.toFlow({ x: event.clientX, y: event.clientY }) ?? { x: 0, y: 0 },
    node,
    edge: idAt(event.target, "edge"),
    container: found?.type === CONTAINER_TYPE ? found.id : (found?.parent ?? null),
  };
}

function onDrop(event: DragEvent, session: EditorSession, catalog: NodeCatalog): void {
  event.preventDefault();
  const file = event.dataTransfer.files[0];
  if (file !== undefined) {
    void importFile(session, file);
    return;
  }
  const [packageName, name] = event.dataTransfer.getData(TYPE_DATA).split(" ");
  const type = catalog.all.find((one) => one.type === name && one.package.name === packageName);
  if (type === undefined) return;
  addByDrop(session, type, dropPlace(session, event));
  // The keys of the editor are for the step now, and no longer for the list that it came from.
  session.canvas.current?.focus();
}

function onDoubleClick(event: MouseEvent, session: EditorSession): void {
  const id = idAt(event.target, "node");
  if (id !== null) session.decor.setState({ naming: id });
  else if (event.target instanceof Element && event.target.classList.contains("react-flow__pane")) {
    const screen = { x: event.clientX, y: event.clientY };
    const at = session.canvas.current?.toFlow(screen) ?? null;
    session.ui.setState({ quickAdd: { screen, at, open: null } });
  }
}

function onContextMenu(event: MouseEvent, session: EditorSession): void {
  const id = idAt(event.target, "node") ?? idAt(event.target, "edge");
  event.preventDefault();
  if (id !== null && !session.editor.getState().selection.has(id)) session.editor.actions.select([id]);
  session.ui.setState({ menu: { x: event.clientX, y: event.clientY } });
}

interface Props {
  readonly catalog: NodeCatalog;
  readonly children?: ReactNode;
}

/** The canvas with all that somebody can do on it. */
export function EditorCanvas({ catalog, children }: Props) {
  const session = useSession();
  const document = useDocument();
  const selection = useEditor((state) => state.selection);
  const isReadOnly = useEditor((state) => state.isReadOnly);
  const edits = useMemo(() => (isReadOnly ? undefined : editsOf(session)), [session, isReadOnly]);
  useEffect(() => {
    session.decor.setState({ actions: isReadOnly ? null : actionsOf(session) });
  }, [session, isReadOnly]);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the canvas inside has its own role and keys
    <div
      className={classes.canvas}
      onDragOver={(event) => {
        if (!isReadOnly) event.preventDefault();
      }}
      onDrop={(event) => {
        if (!isReadOnly) onDrop(event, session, catalog);
      }}
      onDoubleClick={(event) => {
        if (!isReadOnly) onDoubleClick(event, session);
      }}
      onContextMenu={(event) => onContextMenu(event, session)}
      onFocus={(event) => {
        const id = idAt(event.target, "node");
        if (
          id !== null &&
          event.target.matches(":focus-visible") &&
          event.target.classList.contains("react-flow__node")
        )
          session.editor.actions.select([id]);
      }}
    >
      <DecorContext value={session.decor}>
        <FlowCanvas
          document={document}
          catalog={catalog}
          selection={selection}
          onSelect={session.editor.actions.select}
          edits={edits}
        >
          <CanvasBridge />
          {children}
        </FlowCanvas>
      </DecorContext>
    </div>
  );
}
