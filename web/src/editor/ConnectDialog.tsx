import { Modal, TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useMemo, useState } from "react";
import { nodesOf } from "../model/document";
import { Wiring } from "../model/wiring";
import { texts } from "../texts";
import { connectBy } from "./changing";
import classes from "./editor.module.css";
import { chosenStep } from "./selection";
import { documentOf, type EditorSession, useSession } from "./session";

interface Choice {
  readonly key: string;
  readonly label: string;
  readonly detail: string;
  readonly connection: { source: string; target: string; sourceHandle: string; targetHandle: string };
}

/** Every wire that could begin at a step: the data ports first. */
function choicesFor(session: EditorSession, source: string): readonly Choice[] {
  const document = documentOf(session);
  const wiring = new Wiring(document, session.catalog());
  const outputs = [...(wiring.portsOf(source)?.outputs.values() ?? [])];
  const choices: (Choice & { rank: number })[] = [];
  for (const node of nodesOf(document)) {
    const inputs = [...(wiring.portsOf(node.id)?.inputs.values() ?? [])];
    for (const output of outputs) {
      for (const input of inputs) {
        const verdict = wiring.checkOpen(
          { node: source, port: output.key, side: "source" },
          node.id,
          input.key,
        );
        if (!verdict.fits || (input.kind === "data") !== (output.kind === "data")) continue;
        choices.push({
          key: `${output.key}>${node.id}:${input.key}`,
          label: node.label ?? node.type,
          detail: `${output.label} → ${input.label}${verdict.replaces ? ` (${texts.editor.connect.replaces})` : ""}`,
          connection: { source, target: node.id, sourceHandle: output.key, targetHandle: input.key },
          rank: (output.kind === "data" ? 0 : output.kind === "control" ? 1 : 2) + (verdict.replaces ? 3 : 0),
        });
      }
    }
  }
  return choices.sort((one, other) => one.rank - other.rank);
}

/** Connect a step by the keyboard: a list of everything that it can lead to. */
export function ConnectDialog({ onClose }: { readonly onClose: () => void }) {
  const session = useSession();
  const step = chosenStep(session);
  const [query, setQuery] = useState("");
  const [active, setActive] = useState(0);
  const all = useMemo(() => (step === null ? [] : choicesFor(session, step.id)), [session, step]);
  const wanted = query.toLowerCase();
  const found = all.filter((one) => `${one.label} ${one.detail}`.toLowerCase().includes(wanted));
  const pick = (choice: Choice | undefined): void => {
    if (choice !== undefined) connectBy(session, choice.connection);
    onClose();
  };
  const title = texts.editor.connect.title(step?.label ?? step?.type ?? "");
  return (
    <Modal opened onClose={onClose} title={title} size="sm" padding="sm">
      <TextInput
        data-autofocus
        aria-label={texts.editor.connect.search}
        placeholder={texts.editor.connect.search}
        leftSection={<IconSearch size={14} />}
        value={query}
        role="combobox"
        aria-expanded
        aria-controls="connect-list"
        aria-activedescendant={found.length === 0 ? undefined : `connect-${active}`}
        onChange={(event) => {
          setQuery(event.currentTarget.value);
          setActive(0);
        }}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") setActive((at) => Math.min(found.length - 1, at + 1));
          else if (event.key === "ArrowUp") setActive((at) => Math.max(0, at - 1));
          else if (event.key === "Enter") pick(found[active]);
          else return;
          event.preventDefault();
        }}
      />
      <div id="connect-list" role="listbox" aria-label={title} className={classes.connectList}>
        {found.map((choice, place) => (
          <div
            key={choice.key}
            id={`connect-${place}`}
            role="option"
            aria-selected={place === active}
            tabIndex={-1}
            className={classes.row}
            data-active={place === active || undefined}
            onClick={() => pick(choice)}
            onKeyDown={(event) => {
              if (event.key === "Enter") pick(choice);
            }}
          >
            <span className={classes.rowLabel}>{choice.label}</span>
            <code className={classes.rowHint}>{choice.detail}</code>
          </div>
        ))}
      </div>
      {found.length === 0 && (
        <div className={classes.noHit} role="status">
          {texts.editor.connect.none}
        </div>
      )}
    </Modal>
  );
}
