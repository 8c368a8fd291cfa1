/** Finds problems after each pause: first what a browser can find, then what only the scheduler does. */

import { useEffect } from "react";
import type { NodeCatalog } from "../model/catalog";
import { isDrawable, nodesOf, textOf, type WorkflowDocument } from "../model/document";
import { validate } from "../model/validation/validate";
import { countByNode, type FoundProblem, joined } from "./problemPlaces";
import { validateOnServer } from "./requests";
import { documentOf, type EditorSession } from "./session";

const OWN_MS = 200;
const SERVER_MS = 800;

export function useProblems(session: EditorSession, catalog: NodeCatalog): void {
  useEffect(() => {
    let own: ReturnType<typeof setTimeout> | undefined;
    let later: ReturnType<typeof setTimeout> | undefined;
    let server: readonly FoundProblem[] = [];
    /** The document that the scheduler has told about. */
    let checked: WorkflowDocument | null = null;
    let isOver = false;
    const tell = (): void => {
      const document = documentOf(session);
      // An empty canvas says itself what to do.
      const isEmpty = isDrawable(document) && nodesOf(document).length === 0;
      const problems = isEmpty ? [] : joined(validate(document, catalog), server);
      session.ui.setState({ problems });
      session.decor.setState({ problems: countByNode(problems, document) });
    };
    const ask = async (): Promise<void> => {
      const document = documentOf(session);
      if (nodesOf(document).length === 0) return;
      const found = await validateOnServer(textOf(document)).catch(() => null);
      if (isOver || found === null || documentOf(session) !== document) return;
      server = found;
      checked = document;
      tell();
    };
    const recheck = async (): Promise<void> => {
      clearTimeout(own);
      if (server.length > 0 && checked !== documentOf(session)) {
        clearTimeout(later);
        await ask();
      }
      tell();
    };
    const check = (): void => {
      clearTimeout(own);
      clearTimeout(later);
      own = setTimeout(tell, OWN_MS);
      later = setTimeout(() => void ask(), SERVER_MS);
    };
    tell();
    check();
    session.recheck.current = recheck;
    const stop = session.editor.subscribe((state, before) => {
      if (state.history.present === before.history.present) return;
      // Pointers of the scheduler are about the document before; it is asked again in a moment.
      if (nodesOf(state.history.present).length !== nodesOf(before.history.present).length) server = [];
      check();
    });
    return () => {
      isOver = true;
      session.recheck.current = null;
      clearTimeout(own);
      clearTimeout(later);
      stop();
    };
  }, [session, catalog]);
}
