import { Button, Tooltip } from "@mantine/core";
import { IconPlayerPause, IconPlayerPlay } from "@tabler/icons-react";
import { usePause } from "../stores/run";
import { texts } from "../texts";
import { formatCount } from "../values/format";

/** Lets the page stand still while the run goes on; what comes is counted and shown later. */
export function PauseButton() {
  const words = texts.runView.pause;
  const { isPaused, waiting, toggle } = usePause();
  return (
    <Tooltip label={isPaused ? words.resumeHint : words.pauseHint}>
      <Button
        variant={isPaused ? "filled" : "default"}
        leftSection={isPaused ? <IconPlayerPlay size={14} /> : <IconPlayerPause size={14} />}
        onClick={toggle}
      >
        {!isPaused ? words.pause : waiting === 0 ? words.resume : words.resumeWith(formatCount(waiting))}
      </Button>
    </Tooltip>
  );
}
