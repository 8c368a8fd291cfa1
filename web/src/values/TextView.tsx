import { Button } from "@mantine/core";
import { Suspense, useState } from "react";
import { lazyChunk } from "../app/chunks";
import { texts } from "../texts";
import { formatBytes } from "./format";
import classes from "./values.module.css";
import { SHOWN_CHARS } from "./views";

const Markdown = lazyChunk(() => import("./Markdown"));
/** A text beyond this is not put into the page at all: it is a file. */
const MOST_CHARS = 2_000_000;

function download(text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = "value.txt";
  link.click();
  URL.revokeObjectURL(address);
}

/** A text, plain or as Markdown. Of a long one the beginning is shown. */
export function TextView({
  text,
  isMarkdown = false,
}: {
  readonly text: string;
  readonly isMarkdown?: boolean;
}) {
  const [isWhole, setIsWhole] = useState(false);
  const words = texts.runView.values;
  const limit = isWhole ? MOST_CHARS : SHOWN_CHARS;
  const shown = text.length > limit ? text.slice(0, limit) : text;
  return (
    <div className={classes.textBox}>
      {isMarkdown ? (
        <Suspense fallback={<div className={classes.text}>{shown}</div>}>
          <Markdown text={shown} />
        </Suspense>
      ) : (
        <div className={classes.text}>
          {shown === "" ? <i className={classes.nothing}>{words.emptyText}</i> : shown}
        </div>
      )}
      {text.length > shown.length && (
        <div className={classes.cut}>
          <span>{words.cut(formatBytes(shown.length), formatBytes(text.length))}</span>
          {!isWhole && (
            <Button variant="default" size="compact-xs" onClick={() => setIsWhole(true)}>
              {words.showAll}
            </Button>
          )}
          <Button variant="default" size="compact-xs" onClick={() => download(text)}>
            {words.download}
          </Button>
        </div>
      )}
    </div>
  );
}
