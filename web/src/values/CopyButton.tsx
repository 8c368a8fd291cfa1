import { ActionIcon, CopyButton as Copying, Tooltip } from "@mantine/core";
import { IconCheck, IconCopy } from "@tabler/icons-react";
import { texts } from "../texts";

/** Copies a text; `make` is asked when it is pressed, so that a large value is written out only then. */
export function CopyButton({ label, make }: { readonly label: string; readonly make: () => string }) {
  return (
    <Copying value="" timeout={1500}>
      {({ copied, copy }) => (
        <Tooltip label={copied ? texts.copied : label}>
          <ActionIcon
            size={22}
            variant="subtle"
            color="gray"
            aria-label={label}
            onClick={(event) => {
              event.stopPropagation();
              copy();
              void navigator.clipboard.writeText(make());
            }}
          >
            {copied ? <IconCheck size={14} /> : <IconCopy size={14} stroke={1.75} />}
          </ActionIcon>
        </Tooltip>
      )}
    </Copying>
  );
}
