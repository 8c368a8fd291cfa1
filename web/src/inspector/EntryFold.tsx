import type { ReactNode } from "react";
import { RowTools } from "../forms/controls/ListControls";
import { useInspector } from "./context";
import classes from "./inspector.module.css";
import { Fold } from "./Section";

interface EntryFoldProps {
  readonly name: string;
  /** In front of the name. */
  readonly kind?: string;
  readonly pointer: string;
  readonly isOpen: boolean;
  readonly place: number;
  readonly count: number;
  readonly onMove: (to: number) => void;
  readonly onRemove: () => void;
  readonly children: ReactNode;
}

/** One of several named things: it opens, moves up and down, and can be removed. */
export function EntryFold(props: EntryFoldProps) {
  const { name, kind, pointer, isOpen, place, count, onMove, onRemove, children } = props;
  const { isReadOnly } = useInspector();
  return (
    <div className={classes.named}>
      <Fold
        places={[pointer]}
        isOpen={isOpen}
        className={undefined}
        head={
          <summary className={classes.namedSummary}>
            {kind} <code>{name}</code>
          </summary>
        }
      >
        <div className={classes.namedBody}>{children}</div>
      </Fold>
      {!isReadOnly && (
        <span className={classes.namedTools}>
          <RowTools place={place} count={count} name={name} onMove={onMove} onRemove={onRemove} />
        </span>
      )}
    </div>
  );
}
