/** Wakes a loop that waits for something to happen. Signals while the loop is busy are not lost. */
export class WakeUp {
  onSignal: () => void = () => {};
  #wake = Promise.withResolvers<void>();
  #isSignalled = false;
  #failure: { readonly error: unknown } | null = null;

  /** Resolves at the first signal after `clear`. */
  get next(): Promise<void> {
    return this.#wake.promise;
  }

  clear(): void {
    if (!this.#isSignalled) return;
    this.#isSignalled = false;
    this.#wake = Promise.withResolvers();
  }

  signal(): void {
    this.onSignal();
    this.#isSignalled = true;
    this.#wake.resolve();
  }

  fail(error: unknown): void {
    this.#failure ??= { error };
    this.signal();
  }

  throwIfFailed(): void {
    if (this.#failure !== null) throw this.#failure.error;
  }
}
