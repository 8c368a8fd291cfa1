import { Component, type ReactNode } from "react";
import { Failure } from "../app/PanelStates";
import { texts } from "../texts";
import classes from "./shared.module.css";

/** A part of the page that may fail by itself: the rest stays. */
export class PanelBoundary extends Component<
  { readonly children: ReactNode },
  { readonly error: Error | null }
> {
  override state: { readonly error: Error | null } = { error: null };

  static getDerivedStateFromError(error: unknown): { error: Error } {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <Failure title={texts.runView.panelFailed} error={error} retry={() => this.setState({ error: null })} />
    );
  }
}

interface NothingProps {
  readonly title: string;
  readonly hint?: string;
  readonly children?: ReactNode;
}

/** A panel with nothing in it says so. */
export function Nothing({ title, hint, children }: NothingProps) {
  return (
    <div className={classes.note}>
      <strong>{title}</strong>
      {hint !== undefined && <span>{hint}</span>}
      {children}
    </div>
  );
}
