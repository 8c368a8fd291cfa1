import type { Token, Tokens } from "marked";
import { createElement, Fragment, type ReactNode, useEffect, useState } from "react";
import classes from "./inspector.module.css";
import { isSafeLink } from "./links";

/**
 * Markdown of a package. Its parts are drawn as elements of ours, one by one: HTML in it is shown as the text that it
 * is, images by their description, and links lead to web pages only.
 */
export function Markdown({ text }: { readonly text: string }) {
  const [tokens, setTokens] = useState<readonly Token[] | null>(null);
  useEffect(() => {
    let isWanted = true;
    void import("marked").then(({ lexer }) => {
      if (isWanted) setTokens(lexer(text));
    });
    return () => {
      isWanted = false;
    };
  }, [text]);
  return <div className={classes.markdown}>{tokens === null ? text : drawn(tokens)}</div>;
}

/** Parts of a text never change places, so that they are given one by one and need no keys. */
const drawn = (tokens: readonly Token[] | undefined): ReactNode =>
  createElement(Fragment, null, ...(tokens ?? []).map((token) => createElement(Part, { token })));

const HEADINGS = ["h3", "h3", "h4", "h4", "h5", "h5", "h6"] as const;

function Part({ token: given }: { readonly token: Token }): ReactNode {
  const token = given as Tokens.Generic;
  switch (token.type) {
    case "heading": {
      const Heading = HEADINGS[token.depth as number] ?? "h5";
      return <Heading>{drawn(token.tokens)}</Heading>;
    }
    case "paragraph":
      return <p>{drawn(token.tokens)}</p>;
    case "list":
      return <ListPart token={given as Tokens.List} />;
    case "code":
      return (
        <pre>
          <code>{token.text as string}</code>
        </pre>
      );
    case "blockquote":
      return <blockquote>{drawn(token.tokens)}</blockquote>;
    case "table":
      return <TablePart token={given as Tokens.Table} />;
    case "strong":
      return <strong>{drawn(token.tokens)}</strong>;
    case "em":
      return <em>{drawn(token.tokens)}</em>;
    case "del":
      return <del>{drawn(token.tokens)}</del>;
    case "codespan":
      return <code>{token.text as string}</code>;
    case "br":
      return <br />;
    case "hr":
      return <hr />;
    case "link":
      return <LinkPart token={given as Tokens.Link} />;
    case "text":
    case "escape":
      return token.tokens === undefined ? (token.text as string) : drawn(token.tokens);
    case "image":
      return token.text as string;
    case "space":
    case "def":
      return null;
    default:
      return token.raw;
  }
}

function LinkPart({ token }: { readonly token: Tokens.Link }) {
  if (!isSafeLink(token.href)) return <span>{drawn(token.tokens)}</span>;
  return (
    <a href={token.href} target="_blank" rel="noreferrer noopener">
      {drawn(token.tokens)}
    </a>
  );
}

function ListPart({ token }: { readonly token: Tokens.List }) {
  const items = token.items.map((item) => createElement("li", null, drawn(item.tokens)));
  return createElement(token.ordered ? "ol" : "ul", null, ...items);
}

function TablePart({ token }: { readonly token: Tokens.Table }) {
  const row = (cells: readonly Tokens.TableCell[], cell: "th" | "td") =>
    createElement("tr", null, ...cells.map((one) => createElement(cell, null, drawn(one.tokens))));
  return (
    <table>
      <thead>{row(token.header, "th")}</thead>
      {createElement("tbody", null, ...token.rows.map((cells) => row(cells, "td")))}
    </table>
  );
}
