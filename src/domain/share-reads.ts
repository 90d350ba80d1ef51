/**
 * Returns a function that runs `read` for its callers, one run at a time. It resolves after a run that began after the call, because an
 * earlier run may miss the change that the caller waits for. Callers that wait for the next run share it.
 */
export function shareReads(read: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null;
  let next: Promise<void> | null = null;
  return function readAgain(): Promise<void> {
    if (running === null) {
      running = read().finally(() => {
        running = null;
      });
      return running;
    }
    next ??= running
      .catch(() => {})
      .then(() => {
        next = null;
        return readAgain();
      });
    return next;
  };
}
