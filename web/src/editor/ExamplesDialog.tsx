import { Modal } from "@mantine/core";
import { texts } from "../texts";
import { Examples } from "./Examples";

export function ExamplesDialog({ onClose }: { readonly onClose: () => void }) {
  return (
    <Modal opened onClose={onClose} title={texts.editor.examples.title} size="xl">
      <Examples onOpened={onClose} />
    </Modal>
  );
}
