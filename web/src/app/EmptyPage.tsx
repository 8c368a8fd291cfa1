import { Title } from "@mantine/core";
import type { ComponentType, ReactNode } from "react";
import classes from "./frame.module.css";

interface Props {
  readonly title: string;
  readonly empty: string;
  readonly hint: string;
  readonly icon: ComponentType<{ size: number; stroke: number; className?: string | undefined }>;
  readonly children?: ReactNode;
}

/** A page that has nothing to show yet. */
export function EmptyPage({ title, empty, hint, icon: Icon, children }: Props) {
  return (
    <div className={classes.page}>
      <div className={classes.header}>
        <Title order={1}>{title}</Title>
      </div>
      <div className={classes.empty}>
        <Icon size={36} stroke={1.25} className={classes.icon} />
        <Title order={2}>{empty}</Title>
        <div className={classes.hint}>{hint}</div>
        {children}
      </div>
    </div>
  );
}
