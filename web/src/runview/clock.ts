import { useEffect, useState } from "react";

/** The time, for what counts on while something is under way. */
export function useNow(isOn: boolean, everyMs = 1_000): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!isOn) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [isOn, everyMs]);
  return now;
}
