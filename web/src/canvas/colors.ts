/** The colours of notes and groups by their names. A document may have others, as `#rrggbb`. */
export const CANVAS_COLORS = ["yellow", "blue", "green", "red", "gray"] as const;
