/** What the statements behind the calls of the store cost, and which rows they lock. */
import type { Uuid } from '../../src/domain/ids.ts';
import type { MemoryStore } from '../../src/memory/memory-store.ts';
import type { SettleBatch } from '../../src/ports/delivery-queue.ts';
import type { EventRecord } from '../../src/ports/event-store.ts';
import type { SliceDeliveries } from '../../src/ports/fan-out-store.ts';

export const STATEMENT_TIMEOUT_MS = 5_000;
export const LOCK_TIMEOUT_MS = 500;

/** Calls that change or lock rows of the queue or of the health of endpoints. */
export const WRITES_ROWS: ReadonlySet<string> = new Set([
  'settle',
  'markStarted',
  'recordOnWire',
  'recordBatches',
  'decideDebounce',
  'skip',
  'expire',
  'moveToFifo',
  'replay',
  'requestProbe',
]);

/** How many rows a call writes. 0: too few to matter. */
export function countRows(operation: string, parameters: readonly unknown[]): number {
  switch (operation) {
    case 'append': {
      const events = parameters[0] as readonly EventRecord[];
      return events.reduce((rows, { deliveries, skipped }) => rows + deliveries.length + skipped.length, 0);
    }
    case 'write': {
      const { waiting, skipped } = parameters[1] as SliceDeliveries;
      return waiting.length + skipped.length;
    }
    case 'settle':
      return (parameters[0] as SettleBatch).settlements.length;
    default:
      return 0;
  }
}

/** True if the parameters name the endpoint or one of its waiting deliveries. */
export function changesEndpoint(
  store: MemoryStore,
  endpointId: Uuid | null,
  parameters: readonly unknown[],
): boolean {
  if (endpointId === null) return false;
  const text = JSON.stringify(parameters);
  return text.includes(endpointId) || store.queue.of(endpointId).some(({ id }) => text.includes(id));
}
