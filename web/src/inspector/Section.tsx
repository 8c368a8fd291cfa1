import { type ReactNode, useEffect, useState } from "react";
import { isBelow } from "../forms/values";
import { onFocusField } from "./focus";
import classes from "./inspector.module.css";

interface FoldProps {
  /** Pointers of what is in it: a request for a field there opens it. */
  readonly places: readonly string[];
  readonly isOpen: boolean;
  readonly className: string | undefined;
  readonly head: ReactNode;
  readonly children: ReactNode;
}

/** Something that can be closed. What is closed is not drawn: most of it is never looked at. */
export function Fold({ places, isOpen: isOpenAtFirst, className, head, children }: FoldProps) {
  const [isOpen, setOpen] = useState(isOpenAtFirst);
  const key = places.join("\n");
  useEffect(
    () =>
      onFocusField((pointer) => {
        const isMeant = key.split("\n").some((place) => place !== "" && isBelow(pointer, place));
        if (isMeant) setOpen(true);
      }),
    [key],
  );
  return (
    <details className={className} open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      {head}
      {isOpen && children}
    </details>
  );
}

interface SectionProps {
  readonly title: string;
  readonly places: readonly string[];
  readonly help?: string | undefined;
  /** How much is set in it. */
  readonly count?: number;
  readonly problems?: number;
  readonly children: ReactNode;
}

/** A part of the inspector that can be closed. */
export function FoldedSection({ title, places, help, count = 0, problems = 0, children }: SectionProps) {
  return (
    <Fold
      places={places}
      isOpen={problems > 0}
      className={classes.section}
      head={
        <summary className={classes.summary}>
          <span className={classes.sectionTitle}>{title}</span>
          {problems > 0 && <span className={classes.problemCount}>{problems}</span>}
          {count > 0 && <span className={classes.count}>{count}</span>}
        </summary>
      }
    >
      <div className={classes.sectionBody}>
        {help !== undefined && <p className={classes.help}>{help}</p>}
        {children}
      </div>
    </Fold>
  );
}
