import { Skeleton } from "@mantine/core";
import { useEffect, useState } from "react";
import classes from "./editor.module.css";

const AFTER_MS = 150;
const ROWS = ["a", "b", "c", "d", "e", "f", "g", "h"];

/** The shape of the editor while it loads: nothing at first, so that what is fast does not flicker. */
export function EditorSkeleton() {
  const [isLate, setIsLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setIsLate(true), AFTER_MS);
    return () => clearTimeout(timer);
  }, []);
  if (!isLate) return null;
  return (
    <div className={classes.skeleton} aria-busy="true">
      <div>
        {ROWS.map((row) => (
          <Skeleton key={row} height={24} />
        ))}
      </div>
      <div />
      <div>
        <Skeleton height={20} width="60%" />
        {ROWS.slice(0, 4).map((row) => (
          <Skeleton key={row} height={28} />
        ))}
      </div>
    </div>
  );
}
