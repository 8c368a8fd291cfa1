import { Kbd, Modal, Switch } from "@mantine/core";
import { useState } from "react";
import { texts } from "../texts";
import { isMac, wordsOf } from "./chords";
import { COMMANDS, type CommandGroup } from "./commands";
import classes from "./editor.module.css";
import { setSingleKeys, usesSingleKeys } from "./keys";

const GROUPS: readonly CommandGroup[] = ["add", "edit", "select", "run", "view"];

/** All keys, from the table of commands. */
export function ShortcutsDialog({ onClose }: { readonly onClose: () => void }) {
  const [isSingle, setIsSingle] = useState(usesSingleKeys);
  const words = texts.editor.shortcuts;
  return (
    <Modal opened onClose={onClose} title={words.title} size="xl">
      <div className={classes.shortcuts}>
        {GROUPS.map((group) => (
          <section key={group}>
            <h3>{texts.editor.groups[group]}</h3>
            <dl>
              {COMMANDS.filter((command) => command.group === group).map((command) => (
                <div key={command.id}>
                  <dt>{command.label}</dt>
                  <dd>
                    {command.keys.map((key) => (
                      <Kbd key={key} size="xs">
                        {wordsOf(key, isMac())}
                      </Kbd>
                    ))}
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <Switch
        size="xs"
        label={words.singleKeys}
        description={words.hint}
        checked={isSingle}
        onChange={(event) => {
          setSingleKeys(event.currentTarget.checked);
          setIsSingle(event.currentTarget.checked);
        }}
      />
    </Modal>
  );
}
