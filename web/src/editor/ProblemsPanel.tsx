import { Button } from "@mantine/core";
import { IconAlertCircleFilled, IconAlertTriangle, IconCircleCheck } from "@tabler/icons-react";
import { focusField } from "../inspector/focus";
import { useDocument } from "../stores/editor";
import { texts } from "../texts";
import classes from "./editor.module.css";
import { type FoundProblem, type ProblemPlace, placeOf } from "./problemPlaces";
import { useSession, useUi } from "./session";

const words = texts.editor.problems;

/** All problems; each leads to the step and the field that it is about. */
export default function ProblemsPanel() {
  const session = useSession();
  const problems = useUi((state) => state.problems);
  const document = useDocument();
  const goTo = (pointer: string, place: ProblemPlace): void => {
    session.editor.actions.select(place.id === null ? [] : [place.id]);
    if (place.id !== null) session.canvas.current?.reveal(place.id);
    session.ui.setState({ field: place.field ?? "" });
    focusField(pointer);
  };
  if (problems.length === 0) {
    return (
      <div className={classes.noProblems}>
        <IconCircleCheck size={16} stroke={1.75} />
        <span>{words.none}.</span> <span className={classes.dim}>{words.hint}</span>
      </div>
    );
  }
  return (
    <ul className={classes.problems}>
      {problems.map((problem) => (
        <Row
          key={`${problem.pointer} ${problem.code} ${problem.message}`}
          problem={problem}
          place={placeOf(problem, document)}
          onGo={goTo}
        />
      ))}
    </ul>
  );
}

interface RowProps {
  readonly problem: FoundProblem;
  readonly place: ProblemPlace;
  readonly onGo: (pointer: string, place: ProblemPlace) => void;
}

function Row({ problem, place, onGo }: RowProps) {
  const isError = problem.severity === "error";
  const Icon = isError ? IconAlertCircleFilled : IconAlertTriangle;
  return (
    <li data-severity={problem.severity}>
      <span role="img" aria-label={isError ? words.error : words.warning}>
        <Icon size={16} />
      </span>
      <span className={classes.problemPlace}>
        {place.label ?? words.workflow}
        {place.field !== null && <code> › {place.field}</code>}
      </span>
      <span className={classes.problemText}>{problem.message}</span>
      <code className={classes.dim}>{problem.code}</code>
      <Button size="compact-xs" variant="default" onClick={() => onGo(problem.pointer, place)}>
        {words.goTo}
      </Button>
    </li>
  );
}
