import { ActionIcon, Button, Tooltip } from "@mantine/core";
import { IconX } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { useRun } from "../stores/run";
import { texts } from "../texts";
import classes from "./editor.module.css";
import { cancelRun } from "./requests";
import { messageOf } from "./running";
import { notify, useSession, useUi } from "./session";

const words = texts.editor.run;

/** The run that is on the canvas: how it stands, and the way to its page. */
export function RunStrip() {
  const session = useSession();
  const runId = useUi((state) => state.runId);
  const status = useRun((run) => run.status);
  const error = useRun((run) => run.error?.message ?? null);
  if (runId === null) return null;
  const isActive = status === "queued" || status === "running";
  const cancel = (): void =>
    void cancelRun(runId).catch((failure: unknown) => notify(session, messageOf(failure), "error"));
  return (
    <div className={classes.runStrip} data-status={status}>
      <output aria-live="polite">{words.strip(texts.runStatus[status])}</output>
      {error !== null && (
        <span className={classes.runError} title={error}>
          {error}
        </span>
      )}
      <Link to="/runs/$runId" params={{ runId }}>
        {words.open}
      </Link>
      {isActive && (
        <Button size="compact-xs" variant="default" onClick={cancel}>
          {words.cancel}
        </Button>
      )}
      <Tooltip label={words.hide}>
        <ActionIcon
          size="sm"
          variant="subtle"
          color="gray"
          aria-label={words.hide}
          onClick={() => session.ui.setState({ runId: null })}
        >
          <IconX size={14} />
        </ActionIcon>
      </Tooltip>
    </div>
  );
}
