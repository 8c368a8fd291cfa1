/** Keys that count on every page. */

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
