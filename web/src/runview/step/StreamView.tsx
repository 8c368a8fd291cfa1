import { Button, SegmentedControl, Select } from "@mantine/core";
import { Suspense, useEffect, useRef, useState } from "react";
import { lazyChunk } from "../../app/chunks";
import type { OutputStream } from "../../model/run/state";
import { texts } from "../../texts";
import { formatBytes, formatCount } from "../../values/format";
import classes from "../shared.module.css";
import stepClasses from "./step.module.css";

const Markdown = lazyChunk(() => import("../../values/Markdown"));
const RATE_MS = 1_000;

/** Chunks in a second, measured once a second while they come. */
function useRate(next: number): number {
  const [rate, setRate] = useState(0);
  const count = useRef(next);
  count.current = next;
  useEffect(() => {
    let before = count.current;
    const timer = setInterval(() => {
      setRate(Math.max(0, count.current - before));
      before = count.current;
    }, RATE_MS);
    return () => clearInterval(timer);
  }, []);
  return rate;
}

interface Props {
  readonly streams: Readonly<Record<string, OutputStream>>;
  readonly isLive: boolean;
}

/** What a step writes as it writes it. It follows the end until somebody scrolls up. */
export function StreamView({ streams, isLive }: Props) {
  const words = texts.runView.stream;
  const names = Object.keys(streams);
  const [chosen, setChosen] = useState<string | null>(null);
  const name = chosen !== null && streams[chosen] !== undefined ? chosen : (names[0] ?? "");
  const stream = streams[name];
  const [view, setView] = useState<"raw" | "markdown">("raw");
  const [isFollowing, setIsFollowing] = useState(true);
  const place = useRef<HTMLElement>(null);
  const rate = useRate(stream?.next ?? 0);
  const text = stream?.text ?? "";
  // biome-ignore lint/correctness/useExhaustiveDependencies: more text is what moves the end
  useEffect(() => {
    const box = place.current;
    if (isFollowing && box !== null) box.scrollTop = box.scrollHeight;
  }, [text, isFollowing, view]);
  if (stream === undefined) return <p className={classes.dim}>{texts.runView.step.noStream}</p>;
  const isTicking = isLive && rate > 0;
  return (
    <div className={stepClasses.stream}>
      <div className={classes.tools}>
        {names.length > 1 && (
          <Select
            aria-label={words.channel}
            data={names}
            value={name}
            onChange={setChosen}
            allowDeselect={false}
            w={120}
          />
        )}
        <SegmentedControl
          size="xs"
          aria-label={words.view}
          value={view}
          onChange={(next) => setView(next as "raw" | "markdown")}
          data={[
            { value: "raw", label: words.raw },
            { value: "markdown", label: words.markdown },
          ]}
        />
        <span className={classes.grow} />
        <small className={classes.dim}>
          {isTicking
            ? words.rate(formatCount(stream.next), formatCount(rate))
            : words.chunks(formatCount(stream.next))}
        </small>
      </div>
      {stream.forgotten > 0 && (
        <small className={classes.dim}>{words.forgotten(formatBytes(stream.forgotten))}</small>
      )}
      <div className={stepClasses.streamBox}>
        <section
          ref={place}
          className={stepClasses.streamText}
          aria-label={words.text}
          // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard scrolls what has the focus
          tabIndex={0}
          onScroll={({ currentTarget: box }) =>
            setIsFollowing(box.scrollHeight - box.scrollTop - box.clientHeight < 24)
          }
        >
          {view === "markdown" ? (
            <Suspense fallback={text}>
              <Markdown text={text} />
            </Suspense>
          ) : (
            <pre>
              {text}
              {isLive && <span className={stepClasses.caret} aria-hidden="true" />}
            </pre>
          )}
        </section>
        {!isFollowing && isLive && (
          <Button className={classes.toEnd} size="compact-xs" onClick={() => setIsFollowing(true)}>
            ↓ {words.follow}
          </Button>
        )}
      </div>
    </div>
  );
}
