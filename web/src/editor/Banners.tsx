import { Button } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { texts } from "../texts";
import classes from "./editor.module.css";
import { restoreAsDraft } from "./requests";
import { messageOf, save } from "./running";
import { notify, useSession, useUi } from "./session";

const words = texts.editor.banners;

export function Banner({
  kind,
  text,
  children,
}: {
  readonly kind: "info" | "warning" | "error";
  readonly text: string;
  readonly children?: ReactNode;
}) {
  return (
    <div className={classes.banner} data-kind={kind} role={kind === "info" ? "status" : "alert"}>
      <span>{text}</span>
      {children}
    </div>
  );
}

/** An older version is shown, or somebody looks who may not edit. */
export function ReadOnlyBanner({
  version,
  reason,
}: {
  readonly version: number | undefined;
  readonly reason: "version" | "viewer" | "narrow";
}) {
  const session = useSession();
  const navigate = useNavigate();
  const latest = (): Promise<void> =>
    navigate({ to: "/workflows/$workflowId", params: { workflowId: session.workflowId }, search: {} });
  const restore = async (): Promise<void> => {
    try {
      await restoreAsDraft(session.workflowId, version ?? 0);
      await latest();
    } catch (error) {
      notify(session, messageOf(error), "error");
    }
  };
  if (reason !== "version" || version === undefined)
    return <Banner kind="info" text={reason === "narrow" ? words.narrow : words.viewer} />;
  return (
    <Banner kind="info" text={words.version(version)}>
      {session.mayEdit && (
        <>
          <Button variant="default" onClick={() => void latest()}>
            {words.editLatest}
          </Button>
          <Button variant="default" onClick={() => void restore()}>
            {words.restore}
          </Button>
        </>
      )}
    </Banner>
  );
}

interface Props {
  readonly onCompare: () => void;
  readonly onOverwrite: () => void;
  readonly onReload: () => void;
}

/** What stands in the way of saving, and what can be done about it. */
export function SaveBanner({ onCompare, onOverwrite, onReload }: Props) {
  const session = useSession();
  const state = useUi((ui) => ui.save);
  if (state.kind === "conflict")
    return (
      <Banner kind="warning" text={`${words.conflict(state.by)}. ${words.conflictHint}`}>
        <Button variant="default" onClick={onCompare}>
          {words.compare}
        </Button>
        <Button variant="default" onClick={onOverwrite}>
          {words.overwrite}
        </Button>
        <Button variant="default" onClick={onReload}>
          {words.reload}
        </Button>
      </Banner>
    );
  if (state.kind === "deleted")
    return (
      <Banner kind="warning" text={`${words.deleted(state.by)}. ${words.deletedHint}`}>
        <Button variant="default" onClick={onOverwrite}>
          {words.saveAgain}
        </Button>
      </Banner>
    );
  if (state.kind === "offline") return <Banner kind="warning" text={words.offline} />;
  if (state.kind === "failed")
    return (
      <Banner kind="error" text={words.failed(state.message)}>
        <Button variant="default" onClick={() => void save(session)}>
          {words.retry}
        </Button>
      </Banner>
    );
  return null;
}
