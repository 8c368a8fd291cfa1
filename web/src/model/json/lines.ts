/** JSON texts that are shown apart from their document. A line end is never inside of a JSON string. */

/** The text without the indentation that it has by its place in the document. */
export function dedented(text: string): string {
  const lines = text.split("\n");
  const rest = lines.slice(1).filter((line) => line.trim() !== "");
  const common = Math.min(...rest.map((line) => line.length - line.trimStart().length));
  if (!Number.isFinite(common) || common === 0) return text;
  return [lines[0], ...lines.slice(1).map((line) => line.slice(common))].join("\n");
}

/** The text as it stands at a depth of a document whose levels are indented so. */
export function indented(text: string, indent: string, depth: number): string {
  if (indent === "" || !text.includes("\n")) return text;
  return text.split("\n").join(`\n${indent.repeat(depth)}`);
}
