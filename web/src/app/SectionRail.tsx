import { Tooltip } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { MANY_APPROVALS, openFor } from "../runview/approvals";
import { useApprovals } from "../runview/queries";
import { texts } from "../texts";
import classes from "./frame.module.css";
import { SECTIONS } from "./sections";
import { useSession } from "./session";

/** No event tells that a run begins to wait for a person: somebody who is elsewhere learns of it so much later. */
const ASK_MS = 15_000;

/** The sections of the app, and how many decisions wait for whoever is logged in. */
export function SectionRail() {
  const open = openFor(useSession(), useApprovals(ASK_MS).data ?? []).mine.length;
  return (
    <nav className={classes.rail} aria-label={texts.nav.label}>
      {SECTIONS.map((section) => {
        const count = section.to === "/approvals" ? open : 0;
        const label = count === 0 ? section.label : texts.nav.approvalsOpen(count);
        return (
          <Tooltip key={section.to} label={label} position="right">
            <Link
              to={section.to}
              aria-label={label}
              className={section.to === "/settings" ? classes.last : undefined}
            >
              <section.icon size={20} stroke={1.75} />
              {count > 0 && (
                <span className={classes.badge} aria-hidden="true">
                  {count > MANY_APPROVALS ? `${MANY_APPROVALS}+` : count}
                </span>
              )}
            </Link>
          </Tooltip>
        );
      })}
    </nav>
  );
}
