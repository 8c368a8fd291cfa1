/**
 * A lock that a tab holds while it is there. The browser frees it when the tab is gone, also if it has crashed: whoever
 * waits for the same lock learns of it. Without a secure context there are no locks, and a crash is not noticed.
 */

/** What is needed of `navigator.locks`. */
export interface Locks {
  request(name: string, callback: () => unknown): Promise<unknown>;
}

/** Hold a lock. `onHeld` is called as soon as it is; returns how to give it back. */
export function holdLock(locks: Locks, name: string, onHeld: () => void): () => void {
  let isOver = false;
  let end = (): void => {};
  const over = new Promise<void>((resolve) => {
    end = resolve;
  });
  void locks.request(name, () => {
    if (!isOver) onHeld();
    return over;
  });
  return () => {
    isOver = true;
    end();
  };
}

/** Act once when nobody holds the lock any more. */
export function whenFree(locks: Locks, name: string, act: () => void): void {
  void locks.request(name, act);
}
