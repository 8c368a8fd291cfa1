import { Button, Skeleton, Title } from "@mantine/core";
import { type ComponentType, type ReactNode, useEffect, useState } from "react";
import { ApiError } from "../api/client";
import { texts } from "../texts";
import classes from "./frame.module.css";

const SKELETON_AFTER_MS = 150;

/** Whether something has been under way for so long that it should be seen. */
export function useIsLate(): boolean {
  const [isLate, setIsLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setIsLate(true), SKELETON_AFTER_MS);
    return () => clearTimeout(timer);
  }, []);
  return isLate;
}

/** Rows in the shape of what is being loaded; nothing at all if it comes at once. */
export function Loading() {
  const rows = ["a", "b", "c", "d"];
  return useIsLate() ? (
    <div className={classes.rows} aria-busy="true">
      {rows.map((row) => (
        <Skeleton key={row} height={20} />
      ))}
    </div>
  ) : null;
}

interface FailureProps {
  readonly title: string;
  readonly error: Error;
  readonly retry: () => void;
}

/** What could not be loaded, why, and the request to ask about. */
export function Failure({ title, error, retry }: FailureProps) {
  const request = error instanceof ApiError ? error.requestId : null;
  return (
    <div className={classes.empty} role="alert">
      <Title order={2}>{title}</Title>
      <div className={classes.hint}>{error.message}</div>
      {request !== null && <code>{texts.failed.request(request)}</code>}
      <Button onClick={retry}>{texts.failed.retry}</Button>
    </div>
  );
}

interface MissingProps {
  readonly title: string;
  readonly hint: string;
  readonly children: ReactNode;
}

/** What an address names is not there; `children` leads to where others are. */
export function Missing({ title, hint, children }: MissingProps) {
  return (
    <div className={classes.empty}>
      <Title order={1}>{title}</Title>
      <div className={classes.hint}>{hint}</div>
      {children}
    </div>
  );
}

interface EmptyProps {
  readonly icon: ComponentType<{ size: number; stroke: number; className?: string | undefined }>;
  readonly title: string;
  readonly hint?: string;
  readonly children?: ReactNode;
}

/** Nothing is there yet, and how something comes there. */
export function Empty({ icon: Icon, title, hint, children }: EmptyProps) {
  return (
    <div className={classes.empty}>
      <Icon size={36} stroke={1.25} className={classes.icon} />
      <Title order={2}>{title}</Title>
      {hint !== undefined && <div className={classes.hint}>{hint}</div>}
      {children}
    </div>
  );
}

interface Loaded<T> {
  readonly data: T | undefined;
  readonly error: Error | null;
  readonly refetch: () => unknown;
}

/** What a query has brought. Old data stays while it is fetched anew, also if that fails. */
export function Panel<T>({
  query,
  children,
}: {
  readonly query: Loaded<T>;
  readonly children: (data: T) => ReactNode;
}) {
  const { data, error, refetch } = query;
  if (data !== undefined) return children(data);
  if (error === null) return <Loading />;
  return <Failure title={texts.failed.panel} error={error} retry={() => void refetch()} />;
}
