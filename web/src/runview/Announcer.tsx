import { VisuallyHidden } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { useRun } from "../stores/run";
import { texts } from "../texts";

const APART_MS = 2_000;

/** Tells a screen reader how the run stands: when that changes, and once in two seconds at most. */
export function Announcer({ name }: { readonly name: string }) {
  const status = useRun((run) => (run.lastEvent > 0 ? run.status : null));
  const [said, setSaid] = useState("");
  const last = useRef(0);
  useEffect(() => {
    if (status === null) return;
    const wait = Math.max(0, last.current + APART_MS - Date.now());
    const timer = setTimeout(() => {
      last.current = Date.now();
      setSaid(texts.runView.announce(name, texts.runStatus[status]));
    }, wait);
    return () => clearTimeout(timer);
  }, [status, name]);
  return (
    <VisuallyHidden>
      <output aria-live="polite">{said}</output>
    </VisuallyHidden>
  );
}
