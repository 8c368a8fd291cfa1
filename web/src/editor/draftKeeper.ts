/**
 * Keeps the draft of one workflow: each edit goes into the browser first and then to the scheduler, one request at a
 * time. Whatever somebody else has saved meanwhile is never overwritten unasked.
 */

import type { LocalCopies, LocalCopy } from "./localCopies";

export type SaveState =
  /** Nothing was edited since it was opened. */
  | { readonly kind: "clean" }
  | { readonly kind: "pending" }
  | { readonly kind: "saving" }
  | { readonly kind: "saved"; readonly at: number }
  /** The scheduler cannot be reached; it is tried again. */
  | { readonly kind: "offline" }
  | { readonly kind: "failed"; readonly message: string }
  /** Somebody else has saved: `by` says who, if it is known. */
  | { readonly kind: "conflict"; readonly by: string | null }
  /** Somebody else has deleted the workflow; saving makes it anew. */
  | { readonly kind: "deleted"; readonly by: string | null };

export type SaveFailure =
  | { readonly kind: "conflict" }
  | { readonly kind: "offline" }
  | { readonly kind: "refused"; readonly message: string };

export interface KeeperParts {
  readonly workflowId: string;
  readonly revision: number;
  readonly version: number;
  readonly save: (text: string, revision: number) => Promise<number>;
  readonly failureOf: (error: unknown) => SaveFailure;
  readonly copies: LocalCopies;
  readonly now: () => number;
  readonly wait: (run: () => void, milliseconds: number) => () => void;
  readonly onState: (state: SaveState) => void;
  /** Somebody else has saved, and there is nothing of ours that would be lost. */
  readonly onStale: () => void;
}

/** What the scheduler tells about the workflow. */
export interface ForeignSave {
  readonly revision: number | null;
  readonly version: number | null;
  readonly by: string;
  readonly isDeleted?: boolean;
}

const LOCAL_MS = 150;
const SERVER_MS = 700;
const RETRY_MS = 5_000;

export class DraftKeeper {
  private state: SaveState = { kind: "clean" };
  private revisionNow: number;
  private versionNow: number;
  private text: string | null = null;
  private stopLocal: () => void = () => undefined;
  private stopServer: () => void = () => undefined;
  private saving: Promise<void> | null = null;
  private readonly heard: ForeignSave[] = [];
  private isClosed = false;

  constructor(private readonly parts: KeeperParts) {
    this.revisionNow = parts.revision;
    this.versionNow = parts.version;
  }

  get current(): SaveState {
    return this.state;
  }

  get revision(): number {
    return this.revisionNow;
  }

  /** The version that the draft was made from. */
  get version(): number {
    return this.versionNow;
  }

  /** Nothing is sent until somebody decides. */
  private get isStopped(): boolean {
    return this.state.kind === "conflict" || this.state.kind === "deleted";
  }

  /** Whether the scheduler lacks something that was edited here. */
  get isDirty(): boolean {
    return this.text !== null;
  }

  /** The document has changed. */
  change(text: string): void {
    this.text = text;
    this.stopLocal();
    this.stopLocal = this.parts.wait(() => void this.keep(), LOCAL_MS);
    if (this.isStopped) return;
    if (this.state.kind !== "offline") this.tell({ kind: "pending" });
    this.later(SERVER_MS);
  }

  /** Save now; resolves when what was edited until now is saved, or cannot be. */
  async flush(): Promise<void> {
    this.stopServer();
    await this.saving;
    if (this.text !== null && !this.isStopped) await this.send();
  }

  /** Write what is not saved into the browser. */
  async keep(): Promise<void> {
    this.stopLocal();
    const copy = this.copy();
    if (copy !== null) await this.parts.copies.put(copy).catch(() => undefined);
  }

  /** The same at once: the page goes away. */
  leave(): void {
    const copy = this.copy();
    if (copy !== null) this.parts.copies.putNow(copy);
  }

  private copy(): LocalCopy | null {
    if (this.text === null) return null;
    const { workflowId, now } = this.parts;
    return { workflowId, text: this.text, revision: this.revisionNow, version: this.versionNow, at: now() };
  }

  /** Somebody has saved: perhaps this tab, whose answer may come later than the event. */
  hear(save: ForeignSave): void {
    if (this.saving !== null) this.heard.push(save);
    else this.judge(save);
  }

  /** Take what is here in the place of what somebody else has saved at a revision. */
  async overwrite(revision: number, version: number): Promise<void> {
    this.revisionNow = revision;
    this.versionNow = version;
    this.tell({ kind: "pending" });
    await this.flush();
  }

  /** The edits of this browser are given up. */
  async drop(): Promise<void> {
    this.text = null;
    await this.parts.copies.remove(this.parts.workflowId).catch(() => undefined);
  }

  /** Make the draft a version. What is heard meanwhile may be about this very version. */
  async publish(send: (revision: number) => Promise<number>): Promise<number> {
    await this.flush();
    const sent = Promise.resolve(this.revisionNow)
      .then(send)
      .then((version) => {
        this.revisionNow = 0;
        this.versionNow = version;
        if (!this.isDirty) this.tell({ kind: "clean" });
        return version;
      });
    this.saving = sent.then(
      () => this.settle(),
      () => this.settle(),
    );
    return sent;
  }

  /** The connection is back. */
  wake(): void {
    if (this.state.kind === "offline") void this.flush();
  }

  close(): void {
    this.isClosed = true;
    this.stopServer();
    void this.keep();
  }

  conflict(by: string | null): void {
    this.stopServer();
    this.tell({ kind: "conflict", by });
  }

  private judge({ revision, version, by, isDeleted }: ForeignSave): void {
    if (isDeleted) {
      this.stopServer();
      this.tell({ kind: "deleted", by });
      return;
    }
    const isOurs =
      (revision !== null && revision <= this.revisionNow && this.revisionNow > 0) ||
      (version !== null && version <= this.versionNow);
    if (isOurs) return;
    if (this.isDirty) this.conflict(by);
    else this.parts.onStale();
  }

  private later(milliseconds: number): void {
    this.stopServer();
    this.stopServer = this.parts.wait(() => void this.flush(), milliseconds);
  }

  private tell(state: SaveState): void {
    this.state = state;
    if (!this.isClosed) this.parts.onState(state);
  }

  private send(): Promise<void> {
    this.saving = this.sendOnce().finally(() => this.settle());
    return this.saving;
  }

  private settle(): void {
    this.saving = null;
    for (const save of this.heard.splice(0)) this.judge(save);
  }

  private async sendOnce(): Promise<void> {
    const text = this.text;
    if (text === null) return;
    await this.keep();
    this.tell({ kind: "saving" });
    try {
      this.revisionNow = await this.parts.save(text, this.revisionNow);
    } catch (error) {
      this.fail(this.parts.failureOf(error));
      return;
    }
    if (this.text !== text) {
      this.tell({ kind: "pending" });
      this.later(SERVER_MS);
      return;
    }
    await this.drop();
    this.tell({ kind: "saved", at: this.parts.now() });
  }

  private fail(failure: SaveFailure): void {
    switch (failure.kind) {
      case "conflict":
        this.conflict(null);
        break;
      case "offline":
        this.tell({ kind: "offline" });
        if (!this.isClosed) this.later(RETRY_MS);
        break;
      case "refused":
        this.tell({ kind: "failed", message: failure.message });
    }
  }
}
