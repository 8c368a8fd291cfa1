import { Tabs } from "@mantine/core";
import { useEffect, useState } from "react";
import { nodeOf, placeOfNode } from "../model/document";
import { useDocument } from "../stores/editor";
import { texts } from "../texts";
import { useInspector } from "./context";
import { onFocusField } from "./focus";
import classes from "./inspector.module.css";
import { countBelow } from "./problems";
import { StepHead } from "./StepHead";
import { StepInfo } from "./StepInfo";
import { StepInput } from "./StepInput";
import { StepOutput } from "./StepOutput";
import { StepSettings } from "./StepSettings";
import { useNodeType } from "./useNodeType";

const words = texts.forms.tabs;

/** One step: its settings, what comes in, what goes out, and what it is. */
export function StepInspector({ id }: { readonly id: string }) {
  const document = useDocument();
  const { problems } = useInspector();
  const [tab, setTab] = useState<string | null>("settings");
  const node = nodeOf(document, id);
  const found = useNodeType(node);
  const pointer = `/nodes/${placeOfNode(document, id)}`;
  const count = countBelow(problems, pointer);
  useEffect(
    () =>
      onFocusField((wanted) => {
        if (wanted.startsWith(`${pointer}/`)) setTab("settings");
      }),
    [pointer],
  );
  return (
    <>
      <StepHead node={node} found={found} />
      <Tabs value={tab} onChange={setTab} className={classes.tabs} keepMounted={false}>
        <Tabs.List>
          <Tabs.Tab value="settings">
            {words.settings}
            {count > 0 && (
              <span className={classes.problemCount} title={words.problems(count)}>
                {count}
              </span>
            )}
          </Tabs.Tab>
          <Tabs.Tab value="input">{words.input}</Tabs.Tab>
          <Tabs.Tab value="output">{words.output}</Tabs.Tab>
          <Tabs.Tab value="info">{words.info}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="settings" className={classes.panel}>
          <StepSettings node={node} type={found.type} pointer={pointer} />
        </Tabs.Panel>
        <Tabs.Panel value="input" className={classes.panel}>
          <StepInput node={node} type={found.type} />
        </Tabs.Panel>
        <Tabs.Panel value="output" className={classes.panel}>
          <StepOutput node={node} type={found.type} />
        </Tabs.Panel>
        <Tabs.Panel value="info" className={classes.panel}>
          <StepInfo node={node} found={found} />
        </Tabs.Panel>
      </Tabs>
    </>
  );
}
