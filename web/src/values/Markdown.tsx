import type { Token, Tokens } from "marked";
import { Fragment, type ReactNode, useEffect, useState } from "react";
import classes from "./values.module.css";

/** Markdown of nodes and people as React elements: no HTML of theirs reaches the page. */
export default function Markdown({ text }: { readonly text: string }) {
  const [tokens, setTokens] = useState<readonly Token[] | null>(null);
  useEffect(() => {
    let isWanted = true;
    void import("marked").then(({ marked }) => {
      if (isWanted) setTokens(marked.lexer(text));
    });
    return () => {
      isWanted = false;
    };
  }, [text]);
  if (tokens === null) return <div className={classes.text}>{text}</div>;
  return <div className={classes.markdown}>{blocks(tokens)}</div>;
}

// Tokens have no ids, and a text is drawn anew as a whole: their places are their keys.
const keyed = (nodes: readonly ReactNode[]): ReactNode =>
  // biome-ignore lint/suspicious/noArrayIndexKey: see above
  nodes.map((node, place) => <Fragment key={place}>{node}</Fragment>);

const blocks = (tokens: readonly Token[]): ReactNode => keyed(tokens.map(block));
const inlines = (tokens: readonly Token[] | undefined): ReactNode => keyed((tokens ?? []).map(inline));

function block(token: Token): ReactNode {
  switch (token.type) {
    case "heading": {
      // The page has the first two levels.
      const Level = `h${Math.min(6, token.depth + 2)}` as "h3";
      return <Level>{inlines(token.tokens)}</Level>;
    }
    case "paragraph":
      return <p>{inlines(token.tokens)}</p>;
    case "code":
      return (
        <pre>
          <code>{token.text}</code>
        </pre>
      );
    case "blockquote":
      return <blockquote>{blocks(token.tokens ?? [])}</blockquote>;
    case "list": {
      const items = keyed(
        (token as Tokens.List).items.map((item) => <li key={item.raw}>{blocks(item.tokens)}</li>),
      );
      return token.ordered ? <ol start={Number(token.start) || 1}>{items}</ol> : <ul>{items}</ul>;
    }
    case "table":
      return <MarkdownTable table={token as Tokens.Table} />;
    case "hr":
      return <hr />;
    case "space":
      return null;
    default:
      return inline(token);
  }
}

function inline(token: Token): ReactNode {
  switch (token.type) {
    case "strong":
      return <strong>{inlines(token.tokens)}</strong>;
    case "em":
      return <em>{inlines(token.tokens)}</em>;
    case "del":
      return <del>{inlines(token.tokens)}</del>;
    case "codespan":
      return <code>{token.text}</code>;
    case "br":
      return <br />;
    case "link":
      return isSafe(token.href) ? (
        <a href={token.href} target="_blank" rel="noreferrer noopener">
          {inlines(token.tokens)}
        </a>
      ) : (
        inlines(token.tokens)
      );
    case "checkbox":
      return token.checked ? "☑ " : "☐ ";
    case "escape":
      return token.text;
    case "text":
      return "tokens" in token && token.tokens !== undefined ? inlines(token.tokens) : unescaped(token.text);
    default:
      // HTML and pictures of other hosts are shown as they are written.
      return token.raw;
  }
}

const isSafe = (href: string): boolean => /^(https?:|mailto:|\/(?!\/)|#)/i.test(href);

const ENTITIES: Readonly<Record<string, string>> = {
  "&amp;": "&",
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&#39;": "'",
};
const unescaped = (text: string): string =>
  text.replace(/&(?:amp|lt|gt|quot|#39);/g, (found) => ENTITIES[found] ?? found);

function MarkdownTable({ table }: { readonly table: Tokens.Table }) {
  return (
    <table>
      <thead>
        <tr>{keyed(table.header.map((cell) => <th key={cell.text}>{inlines(cell.tokens)}</th>))}</tr>
      </thead>
      <tbody>
        {keyed(
          table.rows.map((row) => (
            <tr key={row.map((cell) => cell.text).join("|")}>
              {keyed(row.map((cell) => <td key={cell.text}>{inlines(cell.tokens)}</td>))}
            </tr>
          )),
        )}
      </tbody>
    </table>
  );
}
