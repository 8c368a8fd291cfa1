import { Fragment } from "react";
import { texts } from "../../texts";
import { useDefinition, useSelectStep } from "../runPage";
import classes from "../shared.module.css";
import { crumbsOf } from "./crumbs";
import stepClasses from "./step.module.css";

/** Where a step is, if it is inside of others. */
export function Breadcrumbs({ scope }: { readonly scope: string }) {
  const definition = useDefinition();
  const select = useSelectStep();
  const crumbs = crumbsOf(scope, (id) => definition.nodes.get(id)?.map != null);
  return (
    <nav className={stepClasses.crumbs} aria-label={texts.runView.step.scope}>
      <button type="button" className={classes.stepLink} onClick={() => select(crumbs[0]?.nodeId ?? null)}>
        {texts.runView.step.root}
      </button>
      {crumbs.map((crumb) => (
        <Fragment key={`${crumb.scope}/${crumb.nodeId}`}>
          <span aria-hidden="true">›</span>
          <button
            type="button"
            className={classes.stepLink}
            onClick={() => select(crumb.nodeId, crumb.scope)}
          >
            {definition.labelOf(crumb.nodeId)}
            {definition.nodes.get(crumb.nodeId)?.map != null && ` [${crumb.item}]`}
          </button>
        </Fragment>
      ))}
    </nav>
  );
}
