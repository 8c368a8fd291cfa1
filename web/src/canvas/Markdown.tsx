import { lexer, type Token, type Tokens } from "marked";
import { createElement, Fragment, type ReactNode } from "react";

/** Markdown as elements. HTML in it is shown as text: nothing that somebody wrote is ever taken for markup. */
export default function Markdown({ text }: { readonly text: string }) {
  return <>{blocks(lexer(text))}</>;
}

const blocks = (tokens: readonly Token[]): ReactNode[] => tokens.map((token, place) => block(token, place));

function block(token: Token, key: number): ReactNode {
  switch (token.type) {
    case "space":
      return null;
    case "heading":
      return createElement(`h${Math.min(6, token.depth + 1)}`, { key }, inlines(token.tokens));
    case "paragraph":
      return <p key={key}>{inlines(token.tokens)}</p>;
    case "list":
      return createElement(
        token.ordered ? "ol" : "ul",
        { key },
        (token as Tokens.List).items.map((item, place) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a text is parsed anew as a whole
          <li key={place}>{blocks(item.tokens)}</li>
        )),
      );
    case "blockquote":
      return <blockquote key={key}>{blocks(token.tokens ?? [])}</blockquote>;
    case "code":
      return (
        <pre key={key}>
          <code>{token.text}</code>
        </pre>
      );
    case "hr":
      return <hr key={key} />;
    case "text":
      return <Fragment key={key}>{token.tokens ? inlines(token.tokens) : token.text}</Fragment>;
    default:
      return <p key={key}>{token.raw}</p>;
  }
}

const inlines = (tokens: readonly Token[] | undefined): ReactNode[] =>
  (tokens ?? []).map((token, place) => inline(token, place));

function inline(token: Token, key: number): ReactNode {
  switch (token.type) {
    case "strong":
      return <strong key={key}>{inlines(token.tokens)}</strong>;
    case "em":
      return <em key={key}>{inlines(token.tokens)}</em>;
    case "del":
      return <del key={key}>{inlines(token.tokens)}</del>;
    case "codespan":
      return <code key={key}>{token.text}</code>;
    case "br":
      return <br key={key} />;
    case "link":
      return /^(https?:|mailto:|\/)/i.test(token.href) ? (
        <a key={key} href={token.href} target="_blank" rel="noreferrer noopener">
          {inlines(token.tokens)}
        </a>
      ) : (
        <Fragment key={key}>{inlines(token.tokens)}</Fragment>
      );
    case "escape":
    case "text":
      return <Fragment key={key}>{token.text}</Fragment>;
    default:
      return <Fragment key={key}>{token.raw}</Fragment>;
  }
}
