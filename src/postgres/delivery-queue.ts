import type { DeliveryQueue } from '../ports/delivery-queue.ts';
import { type Database, inBriefTransaction, type Pool, type Queryable } from './database.ts';
import { loadBatch, loadOpenBatches, recordBatches } from './queries/batches.ts';
import { countWaiting } from './queries/count-waiting.ts';
import { decideDebounce } from './queries/debounce.ts';
import { expireWaiting, moveToFifo, recordOnWire, skipWaiting } from './queries/end-waiting.ts';
import { listRecent, loadLaneStates, loadLanes, loadProbes } from './queries/load-lanes.ts';
import { markStarted } from './queries/mark-started.ts';
import { markProbe } from './queries/probes.ts';
import { replayDeliveries } from './queries/replay.ts';
import { settleDeliveries } from './queries/settle-deliveries.ts';
import { withStoreErrors } from './store-error.ts';

/** Settlements have a connection of their own: reads of lanes never delay the record of a result. */
export function createPostgresDeliveryQueue(database: Pick<Database, 'pool'>): DeliveryQueue {
  const dispatch = database.pool('dispatch');
  const settle = database.pool('settle');
  return {
    loadLanes: (requests) => withStoreErrors(loadLanes(dispatch, requests)),
    loadStates: (ids) => withStoreErrors(loadLaneStates(dispatch, ids)),
    loadProbes: () => withStoreErrors(loadProbes(dispatch)),
    requestProbe: (endpointId) => withStoreErrors(markProbe(dispatch, endpointId)),
    listRecent: (since) => withStoreErrors(listRecent(dispatch, since)),
    countWaiting: (ids, max) => withStoreErrors(countWaiting(dispatch, ids, max)),
    markStarted: (starts, workerId, { givesUpSoon = false } = { givesUpSoon: false }) =>
      withStoreErrors(run(dispatch, givesUpSoon, (client) => markStarted(client, starts, workerId))),
    loadOpenBatches: (endpointIds) => withStoreErrors(loadOpenBatches(dispatch, endpointIds)),
    loadBatch: (id) => withStoreErrors(loadBatch(dispatch, id)),
    recordBatches: (starts, ended, workerId) =>
      withStoreErrors(recordBatches(dispatch, starts, ended, workerId)),
    decideDebounce: (request) => withStoreErrors(decideDebounce(dispatch, request)),
    recordOnWire: (deliveries) => withStoreErrors(recordOnWire(dispatch, deliveries)),
    settle: ({ settlements, health, worker, endpointNotes, givesUpSoon = false }) =>
      withStoreErrors(
        run(settle, givesUpSoon, (client) =>
          settleDeliveries(client, settlements, health, worker, endpointNotes),
        ),
      ),
    skip: (endpointId, reason, except) => withStoreErrors(skipWaiting(dispatch, endpointId, reason, except)),
    expire: (endpointId, agedBefore, except, { blocksLane }) =>
      withStoreErrors(expireWaiting(dispatch, endpointId, agedBefore, except, blocksLane)),
    moveToFifo: (endpointId) => withStoreErrors(moveToFifo(dispatch, endpointId)),
    replay: (deliveries, now) =>
      withStoreErrors(
        replayDeliveries(
          dispatch,
          deliveries.map(({ id, endpointId }) => ({ id, endpoint_id: endpointId })),
          now,
        ),
      ),
  };
}

const run = <T>(pool: Pool, givesUpSoon: boolean, work: (client: Queryable) => Promise<T>): Promise<T> =>
  givesUpSoon ? inBriefTransaction(pool, work) : work(pool);
