import classes from "./values.module.css";

interface Props {
  readonly kind: "video" | "audio";
  readonly address: string;
  readonly label: string;
}

/** Sound or video, played when somebody asks for it. */
export function Player({ kind, address, label }: Props) {
  const more = { src: address, controls: true, preload: "metadata", "aria-label": label };
  return kind === "video" ? <video className={classes.media} {...more} /> : <audio {...more} />;
}
