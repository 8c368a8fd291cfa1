import { ActionIcon, CopyButton, Tooltip } from "@mantine/core";
import { IconCheck, IconCopy, IconServer2 } from "@tabler/icons-react";
import { EmptyPage } from "../app/EmptyPage";
import classes from "../app/frame.module.css";
import { texts } from "../texts";

export function WorkersPage() {
  const command = texts.workerCommand(`${location.origin.replace(/^http/, "ws")}/ws/worker`);
  return (
    <EmptyPage {...texts.pages.workers} icon={IconServer2}>
      <div className={classes.command}>
        <code>{command}</code>
        <CopyButton value={command}>
          {({ copied, copy }) => {
            const label = copied ? texts.copied : texts.copy;
            return (
              <Tooltip label={label}>
                <ActionIcon variant="subtle" color="gray" aria-label={label} onClick={copy}>
                  {copied ? <IconCheck size={14} /> : <IconCopy size={14} />}
                </ActionIcon>
              </Tooltip>
            );
          }}
        </CopyButton>
      </div>
    </EmptyPage>
  );
}
