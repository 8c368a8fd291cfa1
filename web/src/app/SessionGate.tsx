import { Button, Title } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect } from "react";
import { readSession } from "../api/client";
import { texts } from "../texts";
import classes from "./frame.module.css";
import { joinLive } from "./live";

/** Which lists an event of the tenant is about. */
const LISTS = [
  ["run.", "runs"],
  ["worker.", "workers"],
] as const;

/** The app for whoever is logged in; for everybody else, the way to log in. */
export function SessionGate({ children }: { readonly children: ReactNode }) {
  const queries = useQueryClient();
  const {
    data: session,
    error,
    refetch,
  } = useQuery({ queryKey: ["session"], queryFn: readSession, staleTime: Infinity });
  const isIn = session != null;
  useEffect(() => {
    if (!isIn) return;
    return joinLive((type) => {
      for (const [prefix, name] of LISTS)
        if (type.startsWith(prefix)) void queries.invalidateQueries({ queryKey: [name] });
    });
  }, [isIn, queries]);
  if (isIn) return children;
  if (session === null) {
    return (
      <main className={classes.empty}>
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
