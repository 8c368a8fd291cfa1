/** The clipboard for menus. Keys use the events of the browser, which need no permission. */

/** What was copied here last: the only clipboard where the browser gives no other. */
let own: string | null = null;

export async function writeClipboard(text: string): Promise<void> {
  own = text;
  await navigator.clipboard?.writeText(text).catch(() => undefined);
}

export async function readClipboard(): Promise<string | null> {
  const text = await navigator.clipboard?.readText().catch(() => null);
  return text || own;
}

export function rememberCopy(text: string): void {
  own = text;
}
