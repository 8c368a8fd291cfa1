/** The types that were added last, in this browser. */

const KEY = "astraflow-recent-types";
const MAX = 5;

export function recentTypes(): readonly string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(kept) ? kept.filter((one): one is string => typeof one === "string") : [];
  } catch {
    return [];
  }
}

export function rememberType(type: string): void {
  const next = [type, ...recentTypes().filter((one) => one !== type)].slice(0, MAX);
  localStorage.setItem(KEY, JSON.stringify(next));
}
