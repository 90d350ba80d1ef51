import { StoreError } from '../ports/store-error.ts';
import { failureOf, isDatabaseError } from './failures.ts';

/**
 * Runs `work` and rethrows the database's errors as a `StoreError` with the original as its cause. Any other error is a
 * bug and stays as it is.
 */
export async function withStoreErrors<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof StoreError || !isDatabaseError(error)) throw error;
    const message = error instanceof Error ? error.message : String(error);
    throw new StoreError(failureOf(error), message, { cause: error });
  }
}
