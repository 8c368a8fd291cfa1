/** Colours of a terminal in a text, as spans. Everything else that a terminal would do is left out. */

export interface AnsiSpan {
  readonly text: string;
  /** 0 to 7 as terminals number them; 8 to 15 are the bright ones. */
  readonly color: number | null;
  readonly isBold: boolean;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what they begin with
const SEQUENCE = /\u001b(?:\[([0-9;?]*)([A-Za-z])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: what a line may not draw
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f]/g;

export const stripAnsi = (text: string): string =>
  text.includes("\u001b") ? text.replace(SEQUENCE, "").replace(CONTROLS, "") : text.replace(CONTROLS, "");

export function ansiSpans(text: string): readonly AnsiSpan[] {
  if (!text.includes("\u001b")) return [{ text: text.replace(CONTROLS, ""), color: null, isBold: false }];
  const spans: AnsiSpan[] = [];
  let [color, isBold, from]: [number | null, boolean, number] = [null, false, 0];
  const put = (piece: string): void => {
    const clean = piece.replace(CONTROLS, "");
    if (clean !== "") spans.push({ text: clean, color, isBold });
  };
  for (const found of text.matchAll(SEQUENCE)) {
    put(text.slice(from, found.index));
    from = found.index + found[0].length;
    if (found[2] !== "m") continue;
    for (const code of (found[1] || "0").split(";").map(Number)) {
      if (code === 0) [color, isBold] = [null, false];
      else if (code === 1) isBold = true;
      else if (code === 22) isBold = false;
      else if (code === 39) color = null;
      else if (code >= 30 && code <= 37) color = code - 30;
      else if (code >= 90 && code <= 97) color = code - 82;
    }
  }
  put(text.slice(from));
  return spans;
}
