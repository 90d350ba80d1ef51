/** Maps what `pg` throws to the failures that the ports know. */
import { StoreError, type StoreFailure } from '../ports/store-error.ts';
import { type Failure, failureOf, isDatabaseError } from './failures.ts';

const FAILURES: Readonly<Record<Failure, StoreFailure>> = {
  bad_row: 'invalid_row',
  closed_tenant: 'closed_tenant',
  no_partition: 'missing_partition',
  conflict: 'conflict',
  timeout: 'timeout',
  unknown: 'outcome_unknown',
  unavailable: 'unavailable',
  other: 'other',
};

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
    throw new StoreError(FAILURES[failureOf(error)], message, { cause: error });
  }
}
