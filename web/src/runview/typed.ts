import { useDebouncedCallback } from "@mantine/hooks";
import { useState } from "react";

const SETTLE_MS = 250;

/** A text that is typed: it is shown at once, and told when the person pauses. What is told wins again then. */
export function useTyped(value: string, tell: (text: string) => void): [string, (text: string) => void] {
  const [typed, setTyped] = useState<string | null>(null);
  const settle = useDebouncedCallback((text: string) => {
    tell(text);
    setTyped(null);
  }, SETTLE_MS);
  const type = (text: string): void => {
    setTyped(text);
    settle(text);
  };
  return [typed ?? value, type];
}
