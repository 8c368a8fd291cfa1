import { useNavigate } from "@tanstack/react-router";
import { useDocument } from "../stores/editor";
import { texts } from "../texts";
import { ConfirmDelete } from "./ConfirmDelete";
import { nameOf } from "./parts";
import { useSession } from "./session";

/** Delete what is open, and go back to the list. */
export function DeleteDialog({ onClose }: { readonly onClose: () => void }) {
  const session = useSession();
  const navigate = useNavigate();
  const name = nameOf(useDocument()) || texts.editor.untitled;
  return (
    <ConfirmDelete
      id={session.workflowId}
      name={name}
      onClose={onClose}
      onDone={async () => {
        await session.keeper()?.drop();
        await navigate({ to: "/workflows" });
      }}
    />
  );
}
