import { Alert, Button, Checkbox, Drawer, Skeleton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { Time } from "../app/ListPage";
import { texts } from "../texts";
import classes from "./editor.module.css";
import { listVersions, restoreAsDraft } from "./requests";
import { messageOf } from "./running";
import { notify, useSession } from "./session";

const words = texts.editor.versions;

interface Props {
  readonly onClose: () => void;
  readonly onCompare: (from: string, to: string) => void;
}

/** All versions: who, when and what for. One can be looked at or restored, two can be compared. */
export function VersionsDrawer({ onClose, onCompare }: Props) {
  const session = useSession();
  const navigate = useNavigate();
  const { data, error } = useQuery({
    queryKey: ["workflows", session.workflowId, "versions"],
    queryFn: () => listVersions(session.workflowId),
  });
  const [picked, setPicked] = useState<readonly string[]>([]);
  const hasDraft = (session.keeper()?.revision ?? 0) > 0;
  const pick = (name: string, isOn: boolean): void =>
    setPicked((before) => (isOn ? [...before.slice(-1), name] : before.filter((one) => one !== name)));
  const open = async (version?: number): Promise<void> => {
    onClose();
    const search = version === undefined ? {} : { version };
    await navigate({ to: "/workflows/$workflowId", params: { workflowId: session.workflowId }, search });
  };
  const restore = async (version: number): Promise<void> => {
    try {
      await restoreAsDraft(session.workflowId, version);
      await open();
    } catch (failure) {
      notify(session, messageOf(failure), "error");
    }
  };
  const compare = (): void => {
    const rank = (name: string): number => (name === "draft" ? Number.POSITIVE_INFINITY : Number(name));
    const [from, to] = picked.toSorted((one, other) => rank(one) - rank(other));
    if (from !== undefined && to !== undefined) onCompare(from, to);
    onClose();
  };
  return (
    <Drawer opened onClose={onClose} title={words.title} position="right" size={380}>
      {error !== null && (
        <Alert color="red" role="alert">
          {error.message}
        </Alert>
      )}
      {data === undefined && error === null && <Skeleton height={120} />}
      {data?.length === 0 && (
        <p>
          {words.none}. {words.hint}
        </p>
      )}
      <ul className={classes.versions}>
        {hasDraft && (
          <li>
            <Checkbox
              size="xs"
              aria-label={words.pickDraft}
              checked={picked.includes("draft")}
              onChange={(event) => pick("draft", event.currentTarget.checked)}
            />
            <div>
              <strong>{words.draft}</strong>
            </div>
          </li>
        )}
        {data?.map((version) => (
          <li key={version.version}>
            <Checkbox
              size="xs"
              aria-label={words.pick(version.version)}
              checked={picked.includes(String(version.version))}
              onChange={(event) => pick(String(version.version), event.currentTarget.checked)}
            />
            <div>
              <strong>{words.name(version.version)}</strong>
              <span className={classes.dim}>
                {version.savedBy} · <Time at={version.savedAt} />
              </span>
              {version.note && <span className={classes.versionNote}>{version.note}</span>}
              <span className={classes.versionActions}>
                <Button size="compact-xs" variant="default" onClick={() => void open(version.version)}>
                  {words.open}
                </Button>
                {session.mayEdit && (
                  <Button size="compact-xs" variant="default" onClick={() => void restore(version.version)}>
                    {words.restore}
                  </Button>
                )}
              </span>
            </div>
          </li>
        ))}
      </ul>
      {(data?.length ?? 0) + Number(hasDraft) > 1 && (
        <Button fullWidth disabled={picked.length !== 2} onClick={compare}>
          {picked.length === 2 ? words.compareTwo : words.pickHint}
        </Button>
      )}
    </Drawer>
  );
}
