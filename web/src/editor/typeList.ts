/** A list of types with one that the keys are at. */

import { type KeyboardEvent, useMemo, useState } from "react";
import type { NodeType } from "../model/catalog";
import { searchTypes } from "./search";

export interface TypeList {
  readonly query: string;
  readonly setQuery: (query: string) => void;
  readonly found: readonly NodeType[];
  readonly active: number;
  readonly onKeyDown: (event: KeyboardEvent) => void;
}

export function useTypeList(types: readonly NodeType[], onPick: (type: NodeType) => void): TypeList {
  const [query, setText] = useState("");
  const [active, setActive] = useState(0);
  const found = useMemo(() => searchTypes(types, query), [types, query]);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      setActive((at) => Math.max(0, Math.min(found.length - 1, at + step)));
    }
    const type = found[active];
    if (event.key === "Enter" && type !== undefined) {
      event.preventDefault();
      onPick(type);
    }
  };
  const setQuery = (text: string): void => {
    setText(text);
    setActive(0);
  };
  return { query, setQuery, found, active: Math.min(active, Math.max(0, found.length - 1)), onKeyDown };
}
