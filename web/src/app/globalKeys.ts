/** Keys that count on every page. */

import { type HotkeyItem, useHotkeys } from "@mantine/hooks";
import { useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import { usePreferences } from "./preferences";

/** Whether what has the focus takes letters for itself, so that none is a shortcut. */
export function takesLetters(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable ||
      target.matches("input, textarea, select") ||
      target.closest("[role=dialog], [role=menu], [role=listbox]") !== null)
  );
}

export function useGlobalKeys(): void {
  const navigate = useNavigate();
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key !== "?" || takesLetters(event.target) || !usePreferences.getState().hasLetterKeys) return;
      event.preventDefault();
      void navigate({ to: "/settings", search: { tab: "shortcuts" } });
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [navigate]);
}

/** Single letters of a page. They do nothing for those who have switched them off, because they use speech input. */
export function useLetterKeys(keys: readonly HotkeyItem[]): void {
  const isOn = usePreferences((one) => one.hasLetterKeys);
  useHotkeys(isOn ? [...keys] : []);
}
