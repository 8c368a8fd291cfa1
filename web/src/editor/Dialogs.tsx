import { Suspense } from "react";
import { lazyChunk } from "../app/chunks";
import { ConnectDialog } from "./ConnectDialog";
import { DeleteDialog } from "./DeleteDialog";
import { ExamplesDialog } from "./ExamplesDialog";
import { PublishDialog } from "./PublishDialog";
import { ShortcutsDialog } from "./ShortcutsDialog";
import { useSession, useUi } from "./session";
import { VersionsDrawer } from "./VersionsDrawer";

const RunDialog = lazyChunk(() => import("./RunDialog"));

/** The dialog that is open. Closing gives the focus back to where it was. */
export function Dialogs({ onCompare }: { readonly onCompare: (from: string, to: string) => void }) {
  const session = useSession();
  const dialog = useUi((state) => state.dialog);
  const close = (): void => session.ui.setState({ dialog: null });
  switch (dialog) {
    case "shortcuts":
      return <ShortcutsDialog onClose={close} />;
    case "connect":
      return <ConnectDialog onClose={close} />;
    case "publish":
      return <PublishDialog onClose={close} />;
    case "versions":
      return <VersionsDrawer onClose={close} onCompare={onCompare} />;
    case "delete":
      return <DeleteDialog onClose={close} />;
    case "examples":
      return <ExamplesDialog onClose={close} />;
    case "run":
      return (
        <Suspense fallback={null}>
          <RunDialog onClose={close} />
        </Suspense>
      );
    default:
      return null;
  }
}
