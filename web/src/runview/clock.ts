import { useEffect, useState } from "react";
import { usePause } from "../stores/run";

/** The time, for what counts on while something is under way. It stands still with the view of the run around. */
export function useNow(isOn: boolean, everyMs = 1_000): number {
  const [now, setNow] = useState(() => Date.now());
  const { isPaused } = usePause();
  useEffect(() => {
    if (!isOn || isPaused) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [isOn, isPaused, everyMs]);
  return now;
}
