import type { ControlProps } from "../ControlSwitch";
import { ExpressionInput } from "../ExpressionInput";

/** A condition is always an expression: the `=` in front of it may be left out, and is left as it is. */
export function ConditionControl({ field, value, isInvalid, onChange }: ControlProps) {
  const text = typeof value === "string" ? value : "";
  const hasMark = text.startsWith("=");
  return (
    <ExpressionInput
      value={hasMark ? text : `=${text}`}
      label={field.label}
      isInvalid={isInvalid}
      onChange={(next) => {
        const bare = next?.slice(1) ?? "";
        onChange(bare.trim() === "" ? undefined : hasMark ? `=${bare}` : bare);
      }}
    />
  );
}
