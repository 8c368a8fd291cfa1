import { useRef } from "react";
import { moved } from "./controls/ListControls";

/** Keys of rows that stay with a row when it is moved, so that what is typed in it moves along. */
export function useRowKeys(count: number) {
  const state = useRef<{ next: number; all: readonly number[] }>({ next: 0, all: [] });
  const { current } = state;
  if (current.all.length > count) current.all = current.all.slice(0, count);
  while (current.all.length < count) {
    current.all = [...current.all, current.next];
    current.next += 1;
  }
  return {
    all: current.all,
    move(from: number, to: number): void {
      current.all = moved(current.all, from, to);
    },
    remove(place: number): void {
      current.all = current.all.filter((_, one) => one !== place);
    },
  };
}
