/** Rows of a simple CSV, quotes included. */
export function csvRows(text: string): unknown {
  const lines: string[][] = [[]];
  let cell = "";
  let isQuoted = false;
  const end = (): void => {
    lines.at(-1)?.push(cell);
    cell = "";
  };
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at];
    if (isQuoted) {
      if (char !== '"') cell += char;
      else if (text[at + 1] === '"') {
        cell += char;
        at += 1;
      } else isQuoted = false;
    } else if (char === '"') isQuoted = true;
    else if (char === ",") end();
    else if (char === "\n") {
      end();
      lines.push([]);
    } else if (char !== "\r") cell += char;
  }
  end();
  const [head, ...rows] = lines.filter((line) => line.length > 1 || line[0] !== "");
  if (head === undefined || rows.length === 0) return text;
  return rows.map((row) => Object.fromEntries(head.map((name, place) => [name, row[place] ?? ""])));
}
