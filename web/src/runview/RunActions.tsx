import { ActionIcon, Button, Group, Menu, Tooltip } from "@mantine/core";
import {
  IconArrowsDiff,
  IconDots,
  IconDownload,
  IconPencil,
  IconPlayerStop,
  IconRefresh,
  IconRepeat,
  IconSitemap,
} from "@tabler/icons-react";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { ConfirmButton } from "../app/actions";
import { useMay } from "../app/session";
import { texts } from "../texts";
import { type RunHeaderData, useRunActions } from "./queries";
import { RerunDialog } from "./RerunDialog";
import { RunPicker } from "./RunPicker";

interface Props {
  readonly header: RunHeaderData;
  readonly status: RunHeaderData["status"];
  readonly isCancelRequested: boolean;
}

/** What can be done with a run. */
export function RunActions({ header, status, isCancelRequested }: Props) {
  const words = texts.runView.actions;
  const { cancel, rerun } = useRunActions(header.runId);
  const mayStart = useMay("start");
  const isActive = status === "queued" || status === "running";
  const hasFailed = status === "failed" || status === "cancelled";
  return (
    <Group gap={8} wrap="nowrap">
      {mayStart && isActive && (
        <ConfirmButton
          label={words.cancel}
          title={words.cancelTitle}
          body={words.cancelText}
          leftSection={<IconPlayerStop size={14} />}
          disabled={isCancelRequested}
          onConfirm={() => cancel.mutate()}
        />
      )}
      {mayStart && hasFailed && (
        <Button
          leftSection={<IconRefresh size={14} />}
          loading={rerun.isPending}
          onClick={() => rerun.mutate({ mode: "failed" })}
        >
          {words.retryFailed}
        </Button>
      )}
      {mayStart && !isActive && (
        <Button
          variant="default"
          leftSection={<IconRepeat size={14} />}
          disabled={rerun.isPending}
          onClick={() => rerun.mutate({ mode: "all" })}
        >
          {words.rerun}
        </Button>
      )}
      <MoreActions header={header} canRerun={mayStart && !isActive} />
    </Group>
  );
}

function MoreActions({ header, canRerun }: { readonly header: RunHeaderData; readonly canRerun: boolean }) {
  const words = texts.runView.actions;
  const { runId, workflowId } = header;
  const navigate = useNavigate();
  const [dialog, setDialog] = useState<"rerun" | "compare" | null>(null);
  const close = (): void => setDialog(null);
  return (
    <>
      <Menu position="bottom-end" withinPortal>
        <Menu.Target>
          <Tooltip label={words.more}>
            <ActionIcon variant="default" size={30} aria-label={words.more}>
              <IconDots size={16} />
            </ActionIcon>
          </Tooltip>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item
            leftSection={<IconSitemap size={14} />}
            onClick={() => void navigate({ to: "/workflows/$workflowId", params: { workflowId } })}
          >
            {texts.runView.openDefinition}
          </Menu.Item>
          <Menu.Item
            leftSection={<IconPencil size={14} />}
            disabled={!canRerun}
            onClick={() => setDialog("rerun")}
          >
            {words.rerunWith}
          </Menu.Item>
          <Menu.Item leftSection={<IconArrowsDiff size={14} />} onClick={() => setDialog("compare")}>
            {words.compare}
          </Menu.Item>
          <Menu.Item
            component="a"
            href={`/api/v1/runs/${encodeURIComponent(runId)}/logs/file`}
            download
            leftSection={<IconDownload size={14} />}
          >
            {words.downloadLogs}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {dialog === "rerun" && <RerunDialog runId={runId} inputs={header.inputs} onClose={close} />}
      {dialog === "compare" && (
        <RunPicker
          workflowId={workflowId}
          except={runId}
          onClose={close}
          onPick={(second) => void navigate({ to: "/runs/compare", search: { first: runId, second } })}
        />
      )}
    </>
  );
}
