import { Autocomplete, Select } from "@mantine/core";
import { IconFile, IconKey } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client";
import { texts } from "../../texts";
import type { ControlProps } from "../ControlSwitch";
import { helpId } from "../FieldFrame";
import classes from "../forms.module.css";
import { useForm } from "../host";
import { resourceName, secretName } from "../references";
import { typesOf } from "../schema";
import { useDraft } from "../useDraft";
import { StringControl } from "./TextControls";

interface NameProps {
  readonly props: ControlProps;
  readonly name: string;
  readonly onName: (name: string) => void;
}

function SecretName({ props: { field, id, isInvalid }, name, onName }: NameProps) {
  const { isLive } = useForm();
  const secrets = useQuery({
    queryKey: ["secrets", "names"],
    queryFn: async () => dataOf(await api.GET("/api/v1/secrets")).items.map((one) => one.name),
    staleTime: 30_000,
  });
  const draft = useDraft(name, isLive, onName);
  const names = secrets.data ?? [];
  const isMissing = draft.value !== "" && secrets.isSuccess && !names.includes(draft.value);
  return (
    <>
      <Autocomplete
        id={id}
        size="xs"
        leftSection={<IconKey size={14} />}
        data={[...new Set(names)]}
        value={draft.value}
        placeholder={names.length === 0 ? texts.forms.secret.none : texts.forms.secret.choose}
        error={isInvalid}
        aria-describedby={field.help === undefined ? undefined : helpId(id)}
        onChange={draft.change}
        onBlur={draft.flush}
        onOptionSubmit={(chosen) => {
          draft.change(chosen);
          draft.flush();
        }}
      />
      {isMissing && <div className={classes.warning}>{texts.forms.secret.missing(draft.value)}</div>}
    </>
  );
}

/** A reference to a secret. Its value is on the server and stays there. */
export function SecretControl(props: ControlProps) {
  const { value, onChange } = props;
  const isPlain = typeof value === "string" && value !== "" && secretName(value) === "";
  const onName = (name: string): void => onChange(name === "" ? undefined : { secretRef: { name } });
  return (
    <div className={classes.stack}>
      <SecretName props={props} name={secretName(value)} onName={onName} />
      {isPlain && <div className={classes.warning}>{texts.forms.secret.plain}</div>}
    </div>
  );
}

/** A setting that is the name of a secret. */
export function SecretNameControl(props: ControlProps) {
  const { value, onChange } = props;
  const name = typeof value === "string" ? value : "";
  return (
    <div className={classes.stack}>
      <SecretName props={props} name={name} onName={(next) => onChange(next === "" ? undefined : next)} />
    </div>
  );
}

/** A saved workflow, by its id. */
export function WorkflowControl({ field, id, value, isInvalid, onChange }: ControlProps) {
  const saved = useQuery({
    queryKey: ["workflows", "names"],
    queryFn: async () => [
      ...dataOf(await api.GET("/api/v1/workflows", { params: { query: { limit: 200 } } })).items,
    ],
    staleTime: 10_000,
  });
  const chosen = typeof value === "string" && value !== "" ? value : null;
  const listed = (saved.data ?? []).map((one) => ({ value: one.id, label: one.name || one.id }));
  const isListed = chosen === null || listed.some((one) => one.value === chosen);
  return (
    <Select
      id={id}
      data={isListed || chosen === null ? listed : [...listed, { value: chosen, label: chosen }]}
      value={chosen}
      placeholder={texts.forms.chooseWorkflow}
      nothingFoundMessage={texts.forms.noWorkflow}
      error={isInvalid}
      searchable
      clearable={!field.isRequired}
      allowDeselect={false}
      clearButtonProps={{ "aria-label": texts.forms.clear(field.label) }}
      aria-describedby={field.help === undefined ? undefined : helpId(id)}
      onChange={(next) => onChange(next ?? undefined)}
    />
  );
}

/** A file that a worker keeps, by reference; where the schema asks for a text, the path of one. */
export function FileControl(props: ControlProps) {
  const { field, value } = props;
  const types = typesOf(field.schema);
  const isPath = typeof value === "string" || (types.length === 1 && types[0] === "string");
  return isPath ? <StringControl {...props} /> : <FileReference {...props} />;
}

function FileReference({ field, id, value, isInvalid, onChange }: ControlProps) {
  const { isLive } = useForm();
  const files = useQuery({
    queryKey: ["resources", "files"],
    queryFn: async () => [
      ...dataOf(await api.GET("/api/v1/resources", { params: { query: { type: "file" } } })).items,
    ],
    staleTime: 10_000,
  });
  const known = files.data ?? [];
  const draft = useDraft(resourceName(value), isLive, (resourceId) => {
    const found = known.find((one) => one.resourceId === resourceId);
    const worker = found?.workerId == null ? {} : { workerId: found.workerId };
    onChange(
      resourceId === "" ? undefined : { resourceRef: { resourceId, type: found?.type ?? "file", ...worker } },
    );
  });
  return (
    <div className={classes.stack}>
      <Autocomplete
        id={id}
        size="xs"
        leftSection={<IconFile size={14} />}
        data={[...new Set(known.map((one) => one.resourceId))]}
        value={draft.value}
        placeholder={texts.forms.file.choose}
        error={isInvalid}
        aria-describedby={field.help === undefined ? undefined : helpId(id)}
        onChange={draft.change}
        onBlur={draft.flush}
        onOptionSubmit={(chosen) => {
          draft.change(chosen);
          draft.flush();
        }}
      />
      <div className={classes.help}>{texts.forms.file.help(field.accept ?? [])}</div>
    </div>
  );
}
