import { Button } from "@mantine/core";
import {
  IconDownload,
  IconFile,
  IconFileMusic,
  IconFileText,
  IconFileTypeCsv,
  IconJson,
  IconMovie,
  IconPhoto,
} from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { texts } from "../texts";
import { csvRows } from "./csv";
import { formatBytes, shortId } from "./format";
import { Player } from "./Player";
import { type AstraRef, addressOf, type Media, mediaOf } from "./references";
import { TextView } from "./TextView";
import { ValueView } from "./ValueView";
import classes from "./values.module.css";

const ICONS: Readonly<Record<Media, typeof IconFile>> = {
  image: IconPhoto,
  video: IconMovie,
  audio: IconFileMusic,
  json: IconJson,
  table: IconFileTypeCsv,
  markdown: IconFileText,
  text: IconFileText,
  file: IconFile,
};
/** A larger file is not fetched for a preview. */
const PREVIEW_BYTES = 2 * 1024 * 1024;

/** What a worker keeps: what it is, who has it, and a preview if a browser can show it. */
export function ReferenceView({
  reference,
  extra,
}: {
  readonly reference: AstraRef;
  readonly extra?: ReactNode;
}) {
  const media = mediaOf(reference);
  const [isShown, setIsShown] = useState(media === "image");
  const words = texts.runView.values;
  const Icon = ICONS[media];
  const isSmall = reference.sizeBytes === null || reference.sizeBytes <= PREVIEW_BYTES;
  const canShow = media === "video" || media === "audio" || (media !== "file" && isSmall);
  return (
    <div className={classes.reference}>
      <div className={classes.referenceHead}>
        <Icon size={20} stroke={1.5} aria-hidden="true" />
        <div className={classes.referenceName}>
          <span title={reference.resourceId}>{reference.name}</span>
          <small>
            {[
              reference.mime ?? reference.type,
              reference.sizeBytes === null ? null : formatBytes(reference.sizeBytes),
              words.onWorker(shortId(reference.workerId)),
            ]
              .filter((one) => one !== null)
              .join(" · ")}
          </small>
          {extra}
        </div>
        {canShow && (
          <Button
            variant="default"
            size="compact-xs"
            onClick={() => setIsShown(!isShown)}
            aria-expanded={isShown}
          >
            {isShown ? words.hide : words.preview}
          </Button>
        )}
        <Button
          component="a"
          href={addressOf(reference)}
          download={reference.name}
          variant="default"
          size="compact-xs"
          leftSection={<IconDownload size={14} />}
        >
          {words.download}
        </Button>
      </div>
      {isShown && canShow && <Preview reference={reference} media={media} />}
    </div>
  );
}

function Preview({ reference, media }: { readonly reference: AstraRef; readonly media: Media }) {
  const address = addressOf(reference, true);
  if (media === "image") return <img className={classes.media} src={address} alt={reference.name} />;
  if (media === "video" || media === "audio")
    return <Player kind={media} address={address} label={reference.name} />;
  return <FetchedPreview address={address} media={media} />;
}

function FetchedPreview({ address, media }: { readonly address: string; readonly media: Media }) {
  const { data, error } = useQuery({
    queryKey: ["artifact-text", address],
    queryFn: async () => {
      const answer = await fetch(address);
      if (answer.status === 404 || answer.status === 410) throw new Error(texts.runView.values.gone);
      if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
      return await answer.text();
    },
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  if (error !== null) return <div role="alert">{texts.runView.values.noPreview(error.message)}</div>;
  if (data === undefined) return null;
  if (media === "json") return <ValueView value={parsed(data)} />;
  if (media === "table") return <ValueView value={csvRows(data)} />;
  return <TextView text={data} isMarkdown={media === "markdown"} />;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
