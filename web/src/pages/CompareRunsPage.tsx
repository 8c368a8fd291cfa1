import { useSearch } from "@tanstack/react-router";
import { CompareView } from "../runview/CompareView";
import { Nothing } from "../runview/Panel";
import { texts } from "../texts";

/** Two runs, step by step. */
export function CompareRunsPage() {
  const { first, second } = useSearch({ from: "/runs/compare" });
  const words = texts.runView.compare;
  if (first === undefined || second === undefined) return <Nothing title={words.title} hint={words.hint} />;
  return <CompareView first={first} second={second} />;
}
