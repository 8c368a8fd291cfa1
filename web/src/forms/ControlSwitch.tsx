import type { Json } from "../model/json/tree";
import { BooleanControl, ChoicesControl, EnumControl, TagsControl } from "./controls/ChoiceControls";
import { CodeControl, JsonControl } from "./controls/CodeControls";
import { ConditionControl } from "./controls/ConditionControl";
import { GroupControl, RowsControl } from "./controls/ListControls";
import { NumberControl, SliderControl } from "./controls/NumberControls";
import { PairsControl } from "./controls/PairsControl";
import { FileControl, SecretControl, SecretNameControl, WorkflowControl } from "./controls/ReferenceControls";
import { ColorControl, DateControl, StringControl, TextControl } from "./controls/TextControls";
import { TimeZoneControl } from "./controls/TimeZoneControl";
import type { Control, Field } from "./fields";

export interface ControlProps {
  readonly field: Field;
  readonly id: string;
  readonly value: Json | undefined;
  readonly isInvalid: boolean;
  readonly onChange: (value: Json | undefined, text?: string) => void;
}

export interface WholeProps extends ControlProps {
  /** The value of the whole form, for controls that hold fields. */
  readonly whole: Json | undefined;
}

export function ControlSwitch({ control, whole, ...props }: WholeProps & { readonly control: Control }) {
  switch (control) {
    case "string":
      return <StringControl {...props} />;
    case "text":
      return <TextControl {...props} />;
    case "number":
      return <NumberControl {...props} />;
    case "slider":
      return <SliderControl {...props} />;
    case "boolean":
      return <BooleanControl {...props} />;
    case "enum":
      return <EnumControl {...props} />;
    case "choices":
      return <ChoicesControl {...props} />;
    case "tags":
      return <TagsControl {...props} />;
    case "rows":
      return <RowsControl {...props} whole={whole} />;
    case "group":
      return <GroupControl {...props} whole={whole} />;
    case "pairs":
      return <PairsControl {...props} />;
    case "json":
      return <JsonControl {...props} whole={whole} />;
    case "code":
      return <CodeControl {...props} />;
    case "secret":
      return <SecretControl {...props} />;
    case "file":
      return <FileControl {...props} />;
    case "date":
      return <DateControl {...props} type="date" />;
    case "datetime":
      return <DateControl {...props} type="datetime-local" />;
    case "time":
      return <DateControl {...props} type="time" />;
    case "timeZone":
      return <TimeZoneControl {...props} />;
    case "color":
      return <ColorControl {...props} />;
    case "condition":
      return <ConditionControl {...props} />;
    case "secretName":
      return <SecretNameControl {...props} />;
    case "workflow":
      return <WorkflowControl {...props} />;
  }
}
