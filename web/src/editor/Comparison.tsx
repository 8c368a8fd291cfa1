import { useQuery } from "@tanstack/react-query";
import type { NodeCatalog } from "../model/catalog";
import { openDocument, type WorkflowDocument } from "../model/document";
import { useDocument } from "../stores/editor";
import { texts } from "../texts";
import { Banner } from "./Banners";
import { CompareView } from "./CompareView";
import { readNewest, readVersion } from "./requests";
import { useSession } from "./session";

interface Props {
  /** A number is a version; `saved` what the scheduler has, `draft` and `mine` what is open. */
  readonly states: readonly [string, string];
  readonly catalog: NodeCatalog;
  readonly onClose: () => void;
}

const words = texts.editor;

function nameOfState(state: string): string {
  if (state === "saved") return words.toolbar.save.clean;
  return /^[0-9]+$/.test(state) ? words.versions.name(Number(state)).toLowerCase() : words.toolbar.draft;
}

function useCompared(state: string): { document: WorkflowDocument | undefined; error: Error | null } {
  const session = useSession();
  const open = useDocument();
  const isOpen = state === "draft" || state === "mine";
  const { data, error } = useQuery({
    queryKey: ["compared", session.workflowId, state],
    queryFn: async () => {
      const read =
        state === "saved"
          ? await readNewest(session.workflowId)
          : await readVersion(session.workflowId, Number(state));
      return openDocument(read?.text ?? "{}");
    },
    enabled: !isOpen,
    gcTime: 0,
  });
  return { document: isOpen ? open : data, error };
}

/** The comparison that the address names. */
export function Comparison({ states, catalog, onClose }: Props) {
  const before = useCompared(states[0]);
  const after = useCompared(states[1]);
  const error = before.error ?? after.error;
  if (error !== null) return <Banner kind="error" text={error.message} />;
  if (before.document === undefined || after.document === undefined) return null;
  return (
    <CompareView
      before={before.document}
      after={after.document}
      names={[nameOfState(states[0]), nameOfState(states[1])]}
      catalog={catalog}
      onClose={onClose}
    />
  );
}
