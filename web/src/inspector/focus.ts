/** Takes a person to the field of a problem. */

const FOCUSABLE =
  "input:not([type=hidden]), textarea, select, button, [contenteditable=true], [tabindex='0']";

/** Tabs and sections open one inside of the other, each drawn in a turn of its own. */
const MAX_TURNS = 20;

/**
 * Show the field of a pointer, and put the focus into it. Tabs and sections that are closed are opened first. Where the
 * pointer leads deeper than there are fields, the field around it is meant.
 */
export function focusField(pointer: string): void {
  const attempt = (left: number): void => {
    for (const listener of [...listeners]) listener(pointer);
    const exact = fieldAt(pointer);
    if (exact !== null) showField(exact);
    else if (left > 0) requestAnimationFrame(() => attempt(left - 1));
    else showNearest(pointer);
  };
  attempt(MAX_TURNS);
}

function showNearest(pointer: string): void {
  for (let place = pointer; place !== ""; place = place.slice(0, place.lastIndexOf("/"))) {
    const found = fieldAt(place);
    if (found === null) continue;
    showField(found);
    return;
  }
}

const fieldAt = (pointer: string): HTMLElement | null =>
  document.querySelector<HTMLElement>(`[data-pointer="${CSS.escape(pointer)}"]`);

function showField(field: HTMLElement): void {
  field.scrollIntoView({ block: "center" });
  const controls = [...field.querySelectorAll<HTMLElement>(FOCUSABLE)];
  (controls.find((one) => one.tagName !== "BUTTON") ?? controls[0])?.focus({ preventScroll: true });
}

const listeners = new Set<(pointer: string) => void>();

/** Be told of a request before the field is looked for. Returns how to stop. */
export function onFocusField(listener: (pointer: string) => void): () => void {
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
  };
}
