import { Autocomplete, Button, Select, TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client";
import { texts } from "../../texts";
import { useTyped } from "../typed";
import classes from "./list.module.css";
import { type ListedStatus, type RunsSearch, STATUSES, TIMES, type TimeFilter } from "./search";

interface Props {
  readonly search: RunsSearch;
  /** The names to offer for who submitted a run. */
  readonly people: readonly string[];
  readonly onChange: (change: RunsSearch) => void;
  readonly onClear: () => void;
}

/** Which runs are shown. */
export function Filters({ search, people, onChange, onClear }: Props) {
  const words = texts.runView.list;
  const [text, setText] = useTyped(search.text ?? "", (next) =>
    onChange({ text: next === "" ? undefined : next }),
  );
  const [by, setBy] = useTyped(search.by ?? "", (next) => onChange({ by: next === "" ? undefined : next }));
  const { data: workflows } = useQuery({
    queryKey: ["workflows", "names"],
    queryFn: async () =>
      dataOf(await api.GET("/api/v1/workflows", { params: { query: { limit: 200 } } })).items.map((one) => ({
        value: one.id,
        label: one.name || one.id.slice(0, 8),
      })),
  });
  const isFiltered = Object.values(search).some((one) => one !== undefined);
  return (
    <div className={classes.filters}>
      <TextInput
        leftSection={<IconSearch size={14} />}
        placeholder={words.find}
        aria-label={words.find}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        w={220}
      />
      <Select
        aria-label={words.status}
        placeholder={words.anyStatus}
        clearable
        data={STATUSES.map((one) => ({ value: one, label: texts.runStatus[one] }))}
        value={search.status ?? null}
        onChange={(next) => onChange({ status: (next ?? undefined) as ListedStatus | undefined })}
        w={140}
      />
      <Select
        aria-label={words.workflow}
        placeholder={words.anyWorkflow}
        clearable
        searchable
        data={withChosen(workflows ?? [], search.workflow)}
        value={search.workflow ?? null}
        onChange={(next) => onChange({ workflow: next ?? undefined })}
        w={200}
      />
      <Autocomplete
        aria-label={words.submittedBy}
        placeholder={words.anyone}
        clearable
        data={[...people]}
        value={by}
        onChange={setBy}
        w={160}
      />
      <Select
        aria-label={words.time}
        placeholder={words.times.any}
        clearable
        data={TIMES.map((one) => ({ value: one, label: words.times[one] }))}
        value={search.time ?? null}
        onChange={(next) => onChange({ time: (next ?? undefined) as TimeFilter | undefined })}
        w={140}
      />
      {isFiltered && (
        <Button variant="subtle" onClick={onClear}>
          {words.clear}
        </Button>
      )}
    </div>
  );
}

interface Choice {
  readonly value: string;
  readonly label: string;
}

/** A workflow that was never saved has runs, too: its id can be in the address. */
function withChosen(all: readonly Choice[], chosen: string | undefined): Choice[] {
  const known = all.some((one) => one.value === chosen);
  return known || chosen === undefined ? [...all] : [...all, { value: chosen, label: chosen.slice(0, 8) }];
}
