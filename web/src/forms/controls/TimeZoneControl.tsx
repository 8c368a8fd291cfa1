import { Autocomplete } from "@mantine/core";
import { IconWorld } from "@tabler/icons-react";
import { texts } from "../../texts";
import type { ControlProps } from "../ControlSwitch";
import { helpId } from "../FieldFrame";
import classes from "../forms.module.css";
import { useForm } from "../host";
import { foundZones, offsetOf, timeZones } from "../timeZones";
import { useDraft } from "../useDraft";
import { placeholderOf } from "./TextControls";

/** So many at once: a list of all would take long to draw. */
const SHOWN = 60;

/** The name of a time zone: searched in those that the browser knows, or any other that the scheduler may know. */
export function TimeZoneControl({ field, id, value, isInvalid, onChange }: ControlProps) {
  const { isLive } = useForm();
  const given = typeof value === "string" ? value : "";
  const draft = useDraft(given, isLive, (zone) => onChange(zone === "" ? undefined : zone));
  const offset = draft.value === "" ? "" : offsetOf(draft.value, Date.now());
  const isUnknown = draft.value !== "" && offset === "";
  return (
    <>
      <Autocomplete
        id={id}
        size="xs"
        leftSection={<IconWorld size={14} />}
        data={[...timeZones()]}
        // A name that is chosen is no search: all are offered again.
        filter={({ options, search }) =>
          search === given
            ? options
            : foundZones(timeZones(), search).map((zone) => ({ value: zone, label: zone }))
        }
        limit={SHOWN}
        maxDropdownHeight={260}
        value={draft.value}
        placeholder={placeholderOf(field)}
        error={isInvalid}
        aria-describedby={field.help === undefined ? undefined : helpId(id)}
        rightSection={offset === "" ? undefined : <span className={classes.unit}>{offset}</span>}
        rightSectionWidth={64}
        onChange={draft.change}
        onBlur={draft.flush}
        onOptionSubmit={(zone) => {
          draft.change(zone);
          draft.flush();
        }}
      />
      {isUnknown && <div className={classes.warning}>{texts.forms.unknownZone}</div>}
    </>
  );
}
