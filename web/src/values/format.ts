/** Numbers, sizes, times and ids as the app writes them. */

export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"] as const;
  let size = bytes / 1024;
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${size < 10 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}

const two = (value: number): string => String(value).padStart(2, "0");

/** `340 ms`, `4.2 s`, `42 s`, `1m 04s`, `2h 05m`, `3d 04h`. */
export function formatDuration(ms: number): string {
  const whole = Math.max(0, Math.round(ms));
  if (whole === 0) return "< 1 ms";
  if (whole < 1000) return `${whole} ms`;
  if (whole < 10_000) return `${(Math.floor(whole / 100) / 10).toFixed(1)} s`;
  const seconds = Math.floor(whole / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m ${two(seconds % 60)}s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours}h ${two(minutes % 60)}m`;
  return `${Math.floor(hours / 24)}d ${two(hours % 24)}h`;
}

/** From one time to another, or to `now` if that is not known; null if it has not begun. */
export function between(
  start: string | null | undefined,
  end: string | null | undefined,
  now: number,
): number | null {
  if (start == null) return null;
  return Math.max(0, (end == null ? now : Date.parse(end)) - Date.parse(start));
}

/** What tells ids apart: of a ULID its time without the first digits, which change in years; else the beginning. */
export function shortId(id: string): string {
  return /^[0-9A-HJKMNP-TV-Z]{26}$/.test(id) ? id.slice(2, 10) : id.slice(0, 8);
}

export function formatClock(at: string | number, withMillis = false): string {
  const time = new Date(at);
  const clock = `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
  return withMillis ? `${clock}.${String(time.getMilliseconds()).padStart(3, "0")}` : clock;
}

/** The day as people here write it, and the time of day as all clocks of the app do. */
export function formatDate(at: string, withSeconds = false): string {
  const day = new Date(at).toLocaleDateString([], { dateStyle: "medium" });
  return `${day}, ${withSeconds ? formatClock(at) : formatClock(at).slice(0, 5)}`;
}

/** Of today the time, else the day too. */
export function formatWhen(at: string, now: number): string {
  const isToday = new Date(at).toDateString() === new Date(now).toDateString();
  return isToday ? formatClock(at) : formatDate(at, true);
}

const TIME = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)/g;

/** A sentence of the scheduler with its times as people here write them. */
export const withLocalTimes = (text: string, now: number): string =>
  text.replace(TIME, (found) => formatWhen(found, now));

/** 1 204: digits in groups, with a space that does not break. */
export const formatCount = (count: number): string => String(count).replace(/\B(?=(\d{3})+$)/g, " ");
