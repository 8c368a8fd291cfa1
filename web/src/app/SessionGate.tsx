import { Button, Title } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect } from "react";
import icon from "../assets/icon.svg";
import { joinLive, onTenantEvents, useLive } from "../live/live";
import { texts } from "../texts";
import classes from "./frame.module.css";
import { sessionQuery } from "./session";

/** Which lists an event of the tenant is about. */
const LISTS = [
  ["run.", "runs"],
  ["worker.", "workers"],
  ["workflow.", "workflows"],
  ["package.", "packages"],
  ["rollout.", "rollouts"],
  ["resource.", "resources"],
] as const;

/** The app for whoever is logged in; for everybody else, the way to log in. */
export function SessionGate({ children }: { readonly children: ReactNode }) {
  const queries = useQueryClient();
  const { data: session, error, refetch } = useQuery(sessionQuery);
  const isIn = session != null;
  useEffect(() => {
    if (!isIn) return;
    const forget = onTenantEvents((events) => {
      // What came together is fetched once.
      const names = LISTS.filter(([prefix]) => events.some((event) => event.type.startsWith(prefix)));
      for (const [, name] of names) void queries.invalidateQueries({ queryKey: [name] });
    });
    // What happened between the answer to a list and the opening of the stream is told by nobody.
    const forgetState = useLive.subscribe(({ state }, before) => {
      if (state.kind !== "live" || before.state.kind === "live") return;
      for (const [, name] of LISTS) void queries.invalidateQueries({ queryKey: [name] });
    });
    const leave = joinLive();
    return () => {
      forget();
      forgetState();
      leave();
    };
  }, [isIn, queries]);
  if (isIn) return children;
  if (session === null) {
    return (
      <main className={classes.empty}>
        <img src={icon} alt="" width={48} height={48} />
        <Title order={1}>{texts.session.notLoggedIn}</Title>
        <div className={classes.hint}>{texts.session.howToLogIn}</div>
        <Button component="a" href="/login">
          {texts.session.logIn}
        </Button>
      </main>
    );
  }
  if (error === null) return null;
  return (
    <main className={classes.empty} role="alert">
      <Title order={1}>{texts.failed.server}</Title>
      <div className={classes.hint}>{error.message}</div>
      <Button onClick={() => void refetch()}>{texts.failed.retry}</Button>
    </main>
  );
}
