import { SegmentedControl } from "@mantine/core";
import { IconKey } from "@tabler/icons-react";
import { useEffect, useMemo, useState } from "react";
import { texts } from "../texts";
import { CopyButton } from "./CopyButton";
import { JsonTree } from "./JsonTree";
import { Player } from "./Player";
import { ReferenceView } from "./ReferenceView";
import { referenceOf, secretOf } from "./references";
import { TableView } from "./TableView";
import { TextView } from "./TextView";
import classes from "./values.module.css";
import { columnsOf, jsonOf, type ValueViewKind, viewsOf } from "./views";

interface Props {
  readonly value: unknown;
  readonly maxHeight?: number;
}

/** A value of whatever kind, with a switch between the ways to show it. */
export function ValueView({ value, maxHeight = 420 }: Props) {
  const views = useMemo(() => viewsOf(value), [value]);
  const [chosen, setChosen] = useState<ValueViewKind | null>(null);
  const view = chosen !== null && views.includes(chosen) ? chosen : (views[0] ?? "text");
  const words = texts.runView.values;
  // The rows of a tree have buttons of their own.
  const hasBar = views.length > 1 || (view !== "tree" && view !== "secret");
  return (
    <div className={classes.value}>
      {hasBar && (
        <div className={classes.bar}>
          {views.length > 1 && (
            <SegmentedControl
              size="xs"
              aria-label={words.showAs}
              data={views.map((one) => ({ value: one, label: words.views[one] }))}
              value={view}
              onChange={(next) => setChosen(next as ValueViewKind)}
            />
          )}
          {view !== "secret" && (
            <CopyButton
              label={words.copyValue}
              make={() => (typeof value === "string" ? value : JSON.stringify(value, null, 2))}
            />
          )}
        </div>
      )}
      <View value={value} view={view} maxHeight={maxHeight} />
    </div>
  );
}

function View({ value, view, maxHeight }: { readonly view: ValueViewKind } & Required<Props>) {
  const words = texts.runView.values;
  const text = typeof value === "string" ? value : "";
  switch (view) {
    case "tree":
      return <JsonTree value={typeof value === "string" ? jsonOf(value) : value} maxHeight={maxHeight} />;
    case "members":
      return <Members values={value as Readonly<Record<string, unknown>>} />;
    case "table":
      return (
        <TableView
          rows={value as readonly Readonly<Record<string, unknown>>[]}
          columns={columnsOf(value) ?? []}
          maxHeight={maxHeight}
        />
      );
    case "text":
      return (
        <TextView
          text={typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value)}
        />
      );
    case "markdown":
      return <TextView text={text} isMarkdown />;
    case "image":
      return <img className={classes.media} src={text} alt={words.views.image} />;
    case "video":
    case "audio":
      return <Played address={text} view={view} />;
    case "reference": {
      const reference = referenceOf(value);
      return reference === null ? null : <ReferenceView reference={reference} />;
    }
    case "secret":
      return (
        <div className={classes.secret}>
          <IconKey size={16} aria-hidden="true" />
          <span>{words.secret(secretOf(value) ?? "")}</span>
          <small>{words.secretHint}</small>
        </div>
      );
  }
}

/** Sound and video of a data URL. The page may play blobs of its own only. */
function Played({ address, view }: { readonly address: string; readonly view: "video" | "audio" }) {
  const [own, setOwn] = useState<string>();
  useEffect(() => {
    const [head, body] = [address.slice(0, address.indexOf(",")), address.slice(address.indexOf(",") + 1)];
    const bytes = Uint8Array.from(atob(body), (char) => char.charCodeAt(0));
    const made = URL.createObjectURL(new Blob([bytes], { type: head.slice(5).replace(";base64", "") }));
    setOwn(made);
    return () => URL.revokeObjectURL(made);
  }, [address]);
  const label = texts.runView.values.views[view];
  return own === undefined ? null : <Player kind={view} address={own} label={label} />;
}

/** The members of an object, each shown by what it is. */
export function Members({ values }: { readonly values: Readonly<Record<string, unknown>> }) {
  return (
    <dl className={classes.members}>
      {Object.entries(values).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <ValueView value={value} maxHeight={320} />
          </dd>
        </div>
      ))}
    </dl>
  );
}
