import type { Uuid } from '../../domain/ids.ts';
import { isProblem } from '../../domain/problem.ts';

/** Events that were accepted in a log and are not in the database yet (`POSTHORN_BACKBONE=kafka`). */
export interface UnstoredEvents {
  /** Resolves when all events that were accepted so far are in the database. Throws a `Problem` if that takes too long. */
  waitUntilStored(id: Uuid): Promise<void>;
}

/** Runs `use`. If it finds no such event, waits until the accepted events are stored, and runs it again. */
export async function onceStored<T>(
  unstoredEvents: UnstoredEvents | null,
  id: Uuid,
  use: () => Promise<T>,
): Promise<T> {
  try {
    return await use();
  } catch (error) {
    if (unstoredEvents === null || !isProblem(error, 'not_found')) throw error;
  }
  await unstoredEvents.waitUntilStored(id);
  return use();
}
