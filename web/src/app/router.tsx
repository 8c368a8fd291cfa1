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
import { texts } from "../texts";
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
  component: lazyRouteComponent(() => import("../pages/WorkflowsPage"), "WorkflowsPage"),
});
const runs = createRoute({
  getParentRoute: () => root,
  path: "/runs",
  component: lazyRouteComponent(() => import("../pages/RunsPage"), "RunsPage"),
});
const workers = createRoute({
  getParentRoute: () => root,
  path: "/workers",
  component: lazyRouteComponent(() => import("../pages/WorkersPage"), "WorkersPage"),
});
const packages = createRoute({
  getParentRoute: () => root,
  path: "/packages",
  component: lazyRouteComponent(() => import("../pages/PackagesPage"), "PackagesPage"),
});
const settings = createRoute({
  getParentRoute: () => root,
  path: "/settings",
  component: lazyRouteComponent(() => import("../pages/SettingsPage"), "SettingsPage"),
});

export const router = createRouter({
  routeTree: root.addChildren([index, workflows, runs, workers, packages, settings]),
  defaultPreload: "intent",
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
