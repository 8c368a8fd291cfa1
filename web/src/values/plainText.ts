/** Markdown without its marks, for one line of a list. */

const CODE = /(`+)([\s\S]*?)\1/g;

export function plainOf(markdown: string): string {
  let plain = "";
  let from = 0;
  // What is in code is as it stands, stars and underscores too.
  for (const { 0: whole, 2: code = "", index } of markdown.matchAll(CODE)) {
    plain += unmarked(markdown.slice(from, index)) + code;
    from = index + whole.length;
  }
  return (plain + unmarked(markdown.slice(from))).replace(/\s+/g, " ").trim();
}

function unmarked(text: string): string {
  return text
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/(\*\*|__)(?=\S)(.+?)\1/g, "$2")
    .replace(/(^|[^\w*])[*_](?=\S)([^*_]+)[*_](?!\w)/g, "$1$2")
    .replace(/^[ \t]*(?:#{1,6}|>|[-*+])[ \t]+/gm, "");
}
