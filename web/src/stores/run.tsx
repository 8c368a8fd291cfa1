/** What a page knows of a run, apart from the document: no event of a run is ever undone. */

import { createContext, type ReactNode, useContext, useEffect, useMemo } from "react";
import { createStore, type StoreApi, useStore } from "zustand";
import { followRun, refreshRun } from "../live/live";
import { EventBuffer } from "../model/run/buffer";
import type { RunEvent, SnapshotBody } from "../model/run/events";
import { reduceRun } from "../model/run/reducer";
import { type RunNode, type RunState, startRun } from "../model/run/state";

type Listener = (events: readonly RunEvent[]) => void;

/** A run as a page has it: its state, the results of its steps, and its events as they come. */
interface FollowedRun {
  readonly state: StoreApi<RunState>;
  /** Results by node, of steps that are not inside of others. They are values, no state: the reducer has no use for them. */
  readonly results: StoreApi<ReadonlyMap<string, unknown>>;
  readonly listeners: Set<Listener>;
  readonly buffer: EventBuffer;
  readonly pause: StoreApi<Pause>;
}

/** Whether the view stands still, and what has come since. */
interface Pause {
  readonly isPaused: boolean;
  readonly waiting: number;
}

const RunContext = createContext<FollowedRun | null>(null);
/** For what is drawn without a run. */
const NO_RUN = makeRun("");

function makeRun(runId: string): FollowedRun {
  return {
    state: createStore<RunState>()(() => startRun(runId)),
    results: createStore<ReadonlyMap<string, unknown>>()(() => new Map()),
    listeners: new Set(),
    buffer: new EventBuffer(),
    pause: createStore<Pause>()(() => ({ isPaused: false, waiting: 0 })),
  };
}

interface WithResult {
  readonly nodeId: string;
  readonly scopePath?: string | null;
  readonly callId?: string | null;
  readonly result?: unknown;
}

/** The results that events bring. */
function resultsIn(events: readonly RunEvent[]): readonly WithResult[] {
  return events.flatMap((event) => {
    if (event.type === "node.result.snapshot") return [event.data as WithResult];
    if (event.type === "run.snapshot")
      return ((event.data as SnapshotBody).nodes ?? []) as readonly WithResult[];
    return [];
  });
}

function takeResults(run: FollowedRun, events: readonly RunEvent[]): void {
  const found = resultsIn(events).filter(
    (one) => !one.scopePath && one.callId == null && one.result !== null && one.result !== undefined,
  );
  if (found.length === 0) return;
  run.results.setState(
    (known) => new Map([...known, ...found.map((one) => [one.nodeId, one.result] as const)]),
    true,
  );
}

function show(run: FollowedRun, events: readonly RunEvent[]): void {
  run.state.setState((state) => reduceRun(state, events), true);
  takeResults(run, events);
  for (const listener of run.listeners) listener(events);
}

/** What came while the view stood still is shown at once. */
function resume(run: FollowedRun): void {
  const { events, needsSnapshot } = run.buffer.take();
  run.pause.setState({ isPaused: false, waiting: 0 });
  if (events.length > 0) show(run, events);
  if (needsSnapshot || run.state.getState().needsSnapshot) refreshRun(run.state.getState().runId);
}

/** Follow a run for as long as something of it is shown. */
export function RunProvider({
  runId,
  children,
}: {
  readonly runId: string | null;
  readonly children: ReactNode;
}) {
  const run = useMemo(() => (runId === null ? null : makeRun(runId)), [runId]);
  useEffect(() => {
    if (run === null || runId === null) return;
    return followRun(runId, (events) => {
      if (run.pause.getState().isPaused) {
        run.buffer.push(events);
        run.pause.setState({ waiting: run.buffer.count });
        return;
      }
      show(run, events);
      if (run.state.getState().needsSnapshot) refreshRun(runId);
    });
  }, [run, runId]);
  return <RunContext value={run}>{children}</RunContext>;
}

/** A part of the run around; a component is drawn again when that part has changed. */
export function useRun<T>(select: (run: RunState) => T): T {
  return useStore((useContext(RunContext) ?? NO_RUN).state, select);
}

/** The run around as it is at the time of asking, for what is not to be drawn again with it. */
export function useRunReader(): () => RunState {
  const run = useContext(RunContext) ?? NO_RUN;
  return run.state.getState;
}

/** Whether there is a run around at all. */
export const useHasRun = (): boolean => useContext(RunContext) !== null;

/** One step of the run around; undefined if nothing has happened to it. */
export function useStep(key: string): RunNode | undefined {
  return useRun((run) => run.nodes.get(key));
}

/** What a step returned; undefined if it has not. */
export function useResult(nodeId: string): unknown {
  return useStore((useContext(RunContext) ?? NO_RUN).results, (results) => results.get(nodeId));
}

/** Hear the events of the run around as they come. `listener` has to be the same from one drawing to the next. */
export function useRunEvents(listener: Listener): void {
  const run = useContext(RunContext);
  useEffect(() => {
    if (run === null) return;
    run.listeners.add(listener);
    return () => void run.listeners.delete(listener);
  }, [run, listener]);
}

/** Whether the view of the run around stands still, and a way to change that. */
export function usePause(): Pause & { readonly toggle: () => void } {
  const run = useContext(RunContext) ?? NO_RUN;
  const pause = useStore(run.pause);
  const toggle = (): void => {
    if (run.pause.getState().isPaused) resume(run);
    else run.pause.setState({ isPaused: true });
  };
  return { ...pause, toggle };
}
