import { useLive } from "../live/live";
import type { LiveState } from "../live/messages";
import { texts } from "../texts";
import { formatClock } from "../values/format";
import classes from "./frame.module.css";

function wordsOf(state: LiveState): string {
  switch (state.kind) {
    case "connecting":
      return texts.live.connecting;
    case "live":
      return texts.live.live;
    case "reconnecting":
      return texts.live.reconnecting(state.inSeconds);
    case "offline":
      return texts.live.offlineSince(formatClock(state.since).slice(0, 5));
  }
}

/** Whether what is shown is as it is now. */
export function LivePill() {
  const state = useLive((store) => store.state);
  return (
    <output className={classes.live} data-state={state.kind} aria-live="polite">
      <span className={classes.dot} aria-hidden="true" />
      {wordsOf(state)}
    </output>
  );
}
