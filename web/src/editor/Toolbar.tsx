import { ActionIcon, Button, Tooltip } from "@mantine/core";
import {
  IconAlertCircle,
  IconArrowBackUp,
  IconArrowForwardUp,
  IconCircleCheck,
  IconLayoutDistributeVertical,
} from "@tabler/icons-react";
import type { ReactNode } from "react";
import { isDrawable } from "../model/document";
import { redoLabel, undoLabel } from "../model/history";
import { useEditor } from "../stores/editor";
import { texts } from "../texts";
import { tidy } from "./arranging";
import { isMac, wordsOf } from "./chords";
import type { SaveState } from "./draftKeeper";
import classes from "./editor.module.css";
import { MoreMenu } from "./MoreMenu";
import { RunButton } from "./RunButton";
import { SaveStateText } from "./SaveStateText";
import { useSession, useUi } from "./session";
import { WorkflowName } from "./WorkflowName";

const words = texts.editor.toolbar;
/** What cannot be saved cannot become a version. */
const BLOCKED: ReadonlySet<SaveState["kind"]> = new Set(["conflict", "deleted", "offline"]);

interface ToolProps {
  readonly label: string;
  readonly keys: string;
  readonly isDisabled?: boolean;
  readonly onClick: () => void;
  readonly children: ReactNode;
}

function Tool({ label, keys, isDisabled = false, onClick, children }: ToolProps) {
  return (
    <Tooltip label={`${label} (${wordsOf(keys, isMac())})`}>
      <ActionIcon
        variant="subtle"
        color="gray"
        aria-label={label}
        {...(isDisabled ? { "data-disabled": true } : {})}
        aria-disabled={isDisabled}
        onClick={() => {
          if (!isDisabled) onClick();
        }}
      >
        {children}
      </ActionIcon>
    </Tooltip>
  );
}

function History() {
  const { editor } = useSession();
  const undo = useEditor((state) => undoLabel(state.history));
  const redo = useEditor((state) => redoLabel(state.history));
  return (
    <>
      <Tool label={words.undo(undo)} keys="Mod+Z" isDisabled={undo === null} onClick={editor.actions.undo}>
        <IconArrowBackUp size={16} stroke={1.75} />
      </Tool>
      <Tool
        label={words.redo(redo)}
        keys="Mod+Shift+Z"
        isDisabled={redo === null}
        onClick={editor.actions.redo}
      >
        <IconArrowForwardUp size={16} stroke={1.75} />
      </Tool>
    </>
  );
}

function ProblemCount({ onOpen }: { readonly onOpen: () => void }) {
  const errors = useUi((state) => state.problems.filter((one) => one.severity === "error").length);
  const warnings = useUi((state) => state.problems.length) - errors;
  const Icon = errors > 0 ? IconAlertCircle : IconCircleCheck;
  return (
    <Button
      variant="subtle"
      color="gray"
      className={classes.problemCount}
      data-errors={errors > 0 || undefined}
      aria-label={words.problems(errors, warnings)}
      leftSection={<Icon size={16} stroke={1.75} />}
      onClick={onOpen}
    >
      {words.problems(errors, warnings)}
    </Button>
  );
}

/** The bar of the editor: the name, how it is saved, and what can be done with all of it. */
export function Toolbar({ onProblems }: { readonly onProblems: () => void }) {
  const session = useSession();
  const isReadOnly = useEditor((state) => state.isReadOnly);
  const asText = useUi((state) => state.asText);
  const isText = useEditor((state) => !isDrawable(state.history.present)) || asText;
  return (
    <div className={classes.toolbar} role="toolbar" aria-label={words.label}>
      <WorkflowName />
      <SaveStateText />
      <span className={classes.grow} />
      {!isReadOnly && (
        <>
          {!isText && <ProblemCount onOpen={onProblems} />}
          <History />
          {!isText && (
            <Tool label={words.tidy} keys="Alt+Shift+L" onClick={() => void tidy(session)}>
              <IconLayoutDistributeVertical size={16} stroke={1.75} />
            </Tool>
          )}
          <PublishButton />
        </>
      )}
      <MoreMenu />
      {session.mayRun && <RunButton />}
    </div>
  );
}

function PublishButton() {
  const session = useSession();
  const save = useUi((state) => state.save);
  const isDraft = (session.keeper()?.revision ?? 0) > 0 || save.kind !== "clean";
  return (
    <Button
      variant="default"
      disabled={!isDraft || BLOCKED.has(save.kind)}
      onClick={() => session.ui.setState({ dialog: "publish" })}
    >
      {words.publish}
    </Button>
  );
}
