import { Anchor, Button, CloseButton, RingProgress } from "@mantine/core";
import { IconCircle, IconCircleCheckFilled } from "@tabler/icons-react";
import { Link, useLocation } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { texts } from "../texts";
import { nextOf, TOUR_STEPS, type TourStep, useTour } from "./tour";
import classes from "./tour.module.css";

const words = texts.tour;
const START = "/workflows";

/** How far somebody has come, with what is left. It goes for good when all is done, or when it is closed. */
export function TourButton() {
  const { done, isClosed } = useTour();
  const { pathname } = useLocation();
  const [isOpen, setIsOpen] = useState(done.length === 0);
  // Whoever goes on has seen it: it must not lie over the next page.
  useEffect(() => {
    if (pathname !== START) setIsOpen(false);
  }, [pathname]);
  if (isClosed) return null;
  const share = (100 * done.length) / TOUR_STEPS.length;
  return (
    <>
      <button
        type="button"
        className={classes.button}
        aria-expanded={isOpen}
        onClick={() => setIsOpen(!isOpen)}
      >
        <RingProgress size={18} thickness={3} sections={[{ value: share, color: "accent" }]} aria-hidden />
        <span>{words.button}</span>
      </button>
      {isOpen && (
        <section className={classes.card} aria-label={words.title}>
          <CloseButton
            size="sm"
            className={classes.close}
            aria-label={texts.close}
            onClick={() => setIsOpen(false)}
          />
          <h2 className={classes.title}>
            {done.length === TOUR_STEPS.length ? words.finished : words.title}
          </h2>
          <ol className={classes.steps}>
            {TOUR_STEPS.map((step) => (
              <Row
                key={step}
                step={step}
                isDone={done.includes(step)}
                isNext={nextOf(done) === step}
                isElsewhere={pathname !== START}
              />
            ))}
          </ol>
          <Button size="compact-xs" variant="default" onClick={() => useTour.setState({ isClosed: true })}>
            {words.close}
          </Button>
        </section>
      )}
    </>
  );
}

interface RowProps {
  readonly step: TourStep;
  readonly isDone: boolean;
  readonly isNext: boolean;
  readonly isElsewhere: boolean;
}

function Row({ step, isDone, isNext, isElsewhere }: RowProps) {
  const Icon = isDone ? IconCircleCheckFilled : IconCircle;
  const { title, hint } = words.steps[step];
  return (
    <li className={classes.step} data-done={isDone || undefined}>
      <Icon size={16} className={classes.icon} aria-hidden="true" />
      <span>
        {title}
        {isDone && <span className={classes.hidden}> {words.done}</span>}
        {isNext && <span className={classes.hint}>{hint}</span>}
        {isNext && isElsewhere && step === "open" && (
          <Anchor size="xs" renderRoot={(props) => <Link {...props} to={START} />}>
            {words.toWorkflows}
          </Anchor>
        )}
      </span>
    </li>
  );
}
