import { Button, Title } from "@mantine/core";
import {
  createRootRoute,
  createRoute,
  createRouter,
  type ErrorComponentProps,
  Link,
  lazyRouteComponent,
  redirect,
} from "@tanstack/react-router";
import { readSearch } from "../editor/address";
import { readPackagesSearch } from "../ops/packages/search";
import { readSettingsSearch } from "../ops/settings/search";
import { readTriggersSearch } from "../ops/triggers/search";
import { readWorkersSearch } from "../ops/workers/search";
import { readRunsSearch } from "../runview/list/search";
import { readCompareSearch, readRunSearch } from "../runview/search";
import { texts } from "../texts";
import { chunk } from "./chunks";
import { Frame } from "./Frame";
import classes from "./frame.module.css";

function NotFound() {
  return (
    <div className={classes.empty}>
      <Title order={1}>{texts.notFound.title}</Title>
      <Link to="/workflows">{texts.notFound.back}</Link>
    </div>
  );
}

function Failed({ error, reset }: ErrorComponentProps) {
  return (
    <div className={classes.empty} role="alert">
      <Title order={1}>{texts.failed.title}</Title>
      <div className={classes.hint}>{error instanceof Error ? error.message : String(error)}</div>
      <Button onClick={reset}>{texts.failed.retry}</Button>
    </div>
  );
}

const root = createRootRoute({ component: Frame, notFoundComponent: NotFound, errorComponent: Failed });

const index = createRoute({
  getParentRoute: () => root,
  path: "/",
  beforeLoad: () => {
    throw redirect({ to: "/workflows" });
  },
});

// Each page is a chunk of its own, which is loaded when somebody goes there.
const workflows = createRoute({
  getParentRoute: () => root,
  path: "/workflows",
  component: lazyRouteComponent(
    chunk(() => import("../pages/WorkflowsPage")),
    "WorkflowsPage",
  ),
});
const newWorkflow = createRoute({
  getParentRoute: () => root,
  path: "/workflows/new",
  beforeLoad: () => {
    throw redirect({
      to: "/workflows/$workflowId",
      params: { workflowId: crypto.randomUUID() },
      search: { new: true },
    });
  },
});
const workflow = createRoute({
  getParentRoute: () => root,
  path: "/workflows/$workflowId",
  validateSearch: readSearch,
  component: lazyRouteComponent(
    chunk(() => import("../editor/EditorPage")),
    "EditorPage",
  ),
});
const runs = createRoute({
  getParentRoute: () => root,
  path: "/runs",
  validateSearch: readRunsSearch,
  component: lazyRouteComponent(
    chunk(() => import("../pages/RunsPage")),
    "RunsPage",
  ),
});
const run = createRoute({
  getParentRoute: () => root,
  path: "/runs/$runId",
  validateSearch: readRunSearch,
  component: lazyRouteComponent(
    chunk(() => import("../pages/RunPage")),
    "RunPage",
  ),
});
const compareRuns = createRoute({
  getParentRoute: () => root,
  path: "/runs/compare",
  validateSearch: readCompareSearch,
  component: lazyRouteComponent(
    chunk(() => import("../pages/CompareRunsPage")),
    "CompareRunsPage",
  ),
});
const approvals = createRoute({
  getParentRoute: () => root,
  path: "/approvals",
  component: lazyRouteComponent(() => import("../pages/ApprovalsPage"), "ApprovalsPage"),
});
const triggers = createRoute({
  getParentRoute: () => root,
  path: "/triggers",
  validateSearch: readTriggersSearch,
  component: lazyRouteComponent(
    chunk(() => import("../ops/triggers/TriggersPage")),
    "TriggersPage",
  ),
});
const workers = createRoute({
  getParentRoute: () => root,
  path: "/workers",
  validateSearch: readWorkersSearch,
  component: lazyRouteComponent(
    chunk(() => import("../ops/workers/WorkersPage")),
    "WorkersPage",
  ),
});
const packages = createRoute({
  getParentRoute: () => root,
  path: "/packages",
  validateSearch: readPackagesSearch,
  component: lazyRouteComponent(
    chunk(() => import("../ops/packages/PackagesPage")),
    "PackagesPage",
  ),
});
const settings = createRoute({
  getParentRoute: () => root,
  path: "/settings",
  validateSearch: readSettingsSearch,
  component: lazyRouteComponent(
    chunk(() => import("../ops/settings/SettingsPage")),
    "SettingsPage",
  ),
});

export const router = createRouter({
  routeTree: root.addChildren([
    index,
    workflows,
    newWorkflow,
    workflow,
    runs,
    compareRuns,
    run,
    approvals,
    triggers,
    workers,
    packages,
    settings,
  ]),
  // What a page does not know is taken out of the address: an old one still opens the page.
  search: { strict: true },
  defaultPreload: "intent",
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
