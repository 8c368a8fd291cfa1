/** Time zones by their names, and how a person looks for one. */

let known: readonly string[] | null = null;

/** All that the browser knows; UTC first, which its list may lack. */
export function timeZones(): readonly string[] {
  known ??= ["UTC", ...Intl.supportedValuesOf("timeZone").filter((name) => name !== "UTC")];
  return known;
}

const wordsOf = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[\s_/]+/g, " ")
    .trim();

/** Those that have each word of a search: `new york` finds America/New_York. What begins with it comes first. */
export function foundZones(zones: readonly string[], search: string): readonly string[] {
  const text = wordsOf(search);
  if (text === "") return zones;
  const rank = (zone: string): number => {
    const name = wordsOf(zone);
    if (name.startsWith(text)) return 0;
    return ` ${name}`.includes(` ${text}`) ? 1 : 2;
  };
  return zones
    .filter((zone) => text.split(" ").every((word) => wordsOf(zone).includes(word)))
    .toSorted((one, other) => rank(one) - rank(other));
}

/** The difference to UTC at a time, as `UTC+2`; empty for a name that the browser does not know. */
export function offsetOf(zone: string, at: number): string {
  try {
    const format = new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "shortOffset" });
    const name = format.formatToParts(at).find((part) => part.type === "timeZoneName")?.value ?? "";
    return name.replace(/^GMT/, "UTC").replace(/[+]0$/, "");
  } catch (error) {
    if (error instanceof RangeError) return "";
    throw error;
  }
}
