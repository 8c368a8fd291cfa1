import { useCallback, useEffect, useRef, useState } from "react";

/** How long a person stops typing before what was typed counts. */
export const PAUSE_MS = 700;

const pending = new Set<() => void>();

/** Finish what is being typed anywhere: before a save or a run. */
export function flushFields(): void {
  for (const flush of [...pending]) flush();
}

export interface Draft<T> {
  readonly value: T;
  change(value: T): void;
  /** The person is done with the field. */
  flush(): void;
}

/**
 * What is typed, until it is finished: after a pause, when the focus leaves, or when the field goes away. A value that
 * comes from elsewhere, as by an undo, takes its place.
 */
export function useDraft<T>(given: T, isLive: boolean, commit: (value: T) => void): Draft<T> {
  const [value, setValue] = useState(given);
  const latest = useRef({ value: given, given, isDirty: false, commit });
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  latest.current.commit = commit;

  const flush = useCallback(() => {
    clearTimeout(timer.current);
    pending.delete(flush);
    const state = latest.current;
    if (!state.isDirty) return;
    state.isDirty = false;
    state.commit(state.value);
  }, []);

  const change = useCallback(
    (next: T) => {
      latest.current.value = next;
      latest.current.isDirty = true;
      setValue(next);
      if (isLive) return flush();
      pending.add(flush);
      clearTimeout(timer.current);
      timer.current = setTimeout(flush, PAUSE_MS);
    },
    [flush, isLive],
  );

  if (!Object.is(latest.current.given, given)) {
    latest.current.given = given;
    if (!latest.current.isDirty && !Object.is(latest.current.value, given)) {
      latest.current.value = given;
      setValue(given);
    }
  }
  useEffect(() => flush, [flush]);
  return { value, change, flush };
}
