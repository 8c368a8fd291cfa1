import { ActionIcon, CopyButton, Progress, Tooltip } from "@mantine/core";
import { IconCheck, IconCopy } from "@tabler/icons-react";
import { type ReactNode, useEffect, useState } from "react";
import frame from "../app/frame.module.css";
import { texts } from "../texts";
import { formatDuration, shortId } from "../values/format";
import classes from "./ops.module.css";

/** Names and values, one below the other. */
export function Facts({ rows }: { readonly rows: readonly (readonly [string, ReactNode])[] }) {
  return (
    <dl className={classes.facts}>
      {rows.map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value ?? "–"}</dd>
        </div>
      ))}
    </dl>
  );
}

export function CopyIcon({ text, label }: { readonly text: string; readonly label?: string }) {
  return (
    <CopyButton value={text}>
      {({ copied, copy }) => {
        const words = copied ? texts.copied : (label ?? texts.copy);
        return (
          <Tooltip label={words}>
            <ActionIcon variant="subtle" color="gray" size="sm" aria-label={words} onClick={copy}>
              {copied ? <IconCheck size={14} /> : <IconCopy size={14} />}
            </ActionIcon>
          </Tooltip>
        );
      }}
    </CopyButton>
  );
}

/** A line to be typed or pasted elsewhere. */
export function CommandLine({ text, label }: { readonly text: string; readonly label?: string }) {
  return (
    <div className={frame.command}>
      <code>{text}</code>
      <CopyIcon text={text} {...(label === undefined ? {} : { label })} />
    </div>
  );
}

/** The beginning of an id; a click copies all of it. */
export function ShortId({ id }: { readonly id: string }) {
  return (
    <span className={classes.id}>
      <code title={id}>{shortId(id)}</code>
      <CopyIcon text={id} label={texts.operations.copyId} />
    </span>
  );
}

export type Tone = "good" | "warn" | "bad" | "quiet" | "busy";

/** A state: a mark of a shape of its own, and the word. */
export function StateDot({ tone, children }: { readonly tone: Tone; readonly children: ReactNode }) {
  return (
    <span className={classes.state} data-tone={tone}>
      <span className={classes.mark} aria-hidden="true" />
      {children}
    </span>
  );
}

interface MeterProps {
  readonly label: string;
  readonly value: number;
  readonly of: number;
  readonly text: string;
}

export function Meter({ label, value, of, text }: MeterProps) {
  const share = of > 0 ? Math.min(100, (100 * value) / of) : 0;
  return (
    <span className={classes.meter}>
      <Progress value={share} size="sm" w={72} aria-label={`${label}: ${text}`} />
      <span>{text}</span>
    </span>
  );
}

const TICK_MS = 1_000;

/** How long ago something was. It goes on by itself. */
export function Ago({ at }: { readonly at: string | null | undefined }) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), TICK_MS);
    return () => clearInterval(timer);
  }, []);
  if (at == null) return "–";
  const seconds = Math.floor((now - Date.parse(at)) / 1000);
  return (
    <time dateTime={at} title={at}>
      {seconds < 1
        ? texts.operations.justNow
        : texts.operations.ago(seconds < 10 ? `${seconds} s` : formatDuration(seconds * 1000))}
    </time>
  );
}
