import { ActionIcon } from "@mantine/core";
import { IconX } from "@tabler/icons-react";
import { useEffect } from "react";
import { texts } from "../texts";
import classes from "./editor.module.css";
import { useSession, useUi } from "./session";

const SHOWN_MS = 6_000;

/** A short message above the canvas; errors stay until they are closed. */
export function NoticeLine() {
  const session = useSession();
  const notice = useUi((state) => state.notice);
  useEffect(() => {
    if (notice === null || notice.kind === "error") return;
    const timer = setTimeout(() => session.ui.setState({ notice: null }), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [session, notice]);
  return (
    <div className={classes.notices} role="status" aria-live="polite">
      {notice !== null && (
        <div className={classes.notice} data-kind={notice.kind}>
          {notice.text}
          <ActionIcon
            size="sm"
            variant="transparent"
            color="gray"
            aria-label={texts.editor.notices.close}
            onClick={() => session.ui.setState({ notice: null })}
          >
            <IconX size={14} />
          </ActionIcon>
        </div>
      )}
    </div>
  );
}
