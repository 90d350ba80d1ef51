/** A result that is not recorded yet, and how a batch of them is divided if the store refuses it. */
import type { Uuid } from '../domain/ids.ts';
import type { HealthChange, Settlement } from '../ports/delivery-queue.ts';

export interface PendingResult {
  readonly settlement: Settlement;
  readonly health: HealthChange | null;
  /** Called when the result is durable. `hasMoved` is false if another worker settled the delivery, or it was replayed. */
  readonly done: (hasMoved: boolean) => void;
  /** True if all data of the receiver has been removed. */
  readonly isMinimal?: true;
}

/**
 * Separates further results of a delivery that is in the batch already. A worker that lost a shard and took it again may have two:
 * only one of them can move the delivery, and `done` of the other must get false.
 */
export function takeOnePerDelivery(results: readonly PendingResult[]): {
  readonly batch: readonly PendingResult[];
  readonly repeated: readonly PendingResult[];
} {
  const ids = new Set<Uuid>();
  for (const { settlement } of results) ids.add(settlement.deliveryId);
  if (ids.size === results.length) return { batch: results, repeated: [] };
  const isFirst = ({ settlement }: PendingResult): boolean => ids.delete(settlement.deliveryId);
  const { batch = [], repeated = [] } = Object.groupBy(results, (item) =>
    isFirst(item) ? 'batch' : 'repeated',
  );
  return { batch, repeated };
}

/** Returns two halves. Null: the batch is a single result. */
export function halve(
  batch: readonly PendingResult[],
): readonly [readonly PendingResult[], readonly PendingResult[]] | null {
  if (batch.length === 1) return null;
  const middle = batch.length >> 1;
  return [batch.slice(0, middle), batch.slice(middle)];
}

/** Divides a batch that is sorted by endpoint as near to its middle as two endpoints meet. Null: all results are of one endpoint. */
export function divideBetweenEndpoints(
  batch: readonly PendingResult[],
): readonly [readonly PendingResult[], readonly PendingResult[]] | null {
  const middle = batch.length >> 1;
  let border: number | null = null;
  for (let at = 1; at < batch.length; at += 1)
    if (batch[at]!.settlement.endpointId !== batch[at - 1]!.settlement.endpointId)
      if (border === null || Math.abs(at - middle) < Math.abs(border - middle)) border = at;
  return border === null ? null : [batch.slice(0, border), batch.slice(border)];
}

/** Returns two halves, or a single result without data of the receiver. Null: the batch cannot be made smaller. */
export function splitBatch(batch: readonly PendingResult[]): readonly (readonly PendingResult[])[] | null {
  return halve(batch) ?? (batch[0]!.isMinimal ? null : [[withoutReceiverData(batch[0]!)]]);
}

/** Removes all data of the receiver. The rest of a result can always be stored. */
function withoutReceiverData(item: PendingResult): PendingResult {
  const { attempt } = item.settlement;
  if (attempt === null) return { ...item, health: null, isMinimal: true };
  const { outcome } = attempt;
  return {
    ...item,
    isMinimal: true,
    health: null,
    settlement: {
      ...item.settlement,
      attempt: {
        ...attempt,
        outcome: {
          ...outcome,
          error: outcome.error && { class: outcome.error.class, message: 'The details could not be stored.' },
          responseHeaders: null,
          responseBody: null,
          responseTruncated: true,
          requestHeaders: {},
        },
      },
    },
  };
}
