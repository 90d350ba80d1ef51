import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Clock, systemClock } from '../domain/clock.ts';
import { resolveEndpoint } from '../domain/endpoint-config.ts';
import { deliveryIdOf, timeOfId, type Uuid } from '../domain/ids.ts';
import type { FanOutSlice, FanOutStore, SliceDeliveries, SliceResult } from '../ports/fan-out-store.ts';
import type { CommittedDelivery } from '../ports/hand-over.ts';
import { StoreError } from '../ports/store-error.ts';
import { FanOutWriter } from './fan-out-writer.ts';

const EVENT = '0190aaaa-0000-8000-8000-000000000000';
const endpointId = (n: number): Uuid => `0190bbbb-0000-7000-8000-${String(n).padStart(12, '0')}`;

/** Timers run immediately, except for the poll. */
function createClock() {
  const polls: (() => void)[] = [];
  const clock: Clock = {
    now: systemClock.now,
    monotonic: systemClock.monotonic,
    after(ms, task) {
      // The poll for the slices of other processes.
      if (ms >= 1_000) {
        polls.push(task);
        return () => {};
      }
      const timer = setImmediate(task);
      return () => clearImmediate(timer);
    },
  };
  return { clock, polls };
}

interface Options {
  /** How many endpoints of each tenant are unwritten. */
  readonly unwritten: Readonly<Record<string, number>>;
  readonly sliceRows?: number;
  /** The store's clock. The clock of the process is days after the event. */
  readonly storeNow?: number;
  readonly onWrite?: (slice: FanOutSlice, version: number) => SliceResult | Promise<SliceResult>;
  readonly isStoreQuiet?: () => boolean;
}

function createWriter({
  unwritten,
  sliceRows = 4,
  storeNow = Date.now(),
  onWrite = () => 'written',
  isStoreQuiet = () => false,
}: Options) {
  const left = new Map(Object.entries(unwritten));
  const next = new Map(Object.keys(unwritten).map((tenant) => [tenant, 0]));
  const tries: string[] = [];
  const written: SliceDeliveries[] = [];
  const routed: { deliveries: readonly CommittedDelivery[]; isCertain: boolean }[] = [];
  let reads = 0;
  const fanOuts: FanOutStore = {
    async findNext(afterTenant, maxEndpoints) {
      reads += 1;
      const tenants = [...left].filter(([, count]) => count > 0).map(([tenant]) => tenant);
      const tenant = tenants.find((each) => each > afterTenant) ?? tenants[0];
      if (tenant === undefined) return null;
      const first = next.get(tenant)!;
      const count = Math.min(maxEndpoints, left.get(tenant)!);
      const endpointIds = Array.from({ length: count }, (_, n) => endpointId(first + n));
      const place = { eventId: EVENT, tenant, firstOrdinal: first };
      return { ...place, endpointIds, wasDisabled: false, deliverAt: null };
    },
    countSlices: async () => 0,
    async write(slice, deliveries, version) {
      const { tenant, endpointIds } = slice;
      tries.push(`${tenant} ${endpointIds.length}`);
      const result = await onWrite(slice, version);
      if (result !== 'written') return result;
      written.push(deliveries);
      left.set(tenant, left.get(tenant)! - endpointIds.length);
      next.set(tenant, next.get(tenant)! + endpointIds.length);
      return 'written';
    },
  };
  const endpoint = resolveEndpoint(
    {
      id: endpointId(0),
      tenant: 'acme',
      url: 'https://a.test/',
      config: {},
      enabled: true,
      disabledReason: null,
      paused: false,
      deleted: false,
    },
    [],
  );
  const endpoints = {
    version: 1,
    get: (id: Uuid) =>
      id === endpointId(1)
        ? { ...endpoint, enabled: false }
        : id === endpointId(2)
          ? { ...endpoint, deleted: true }
          : endpoint,
    async refresh() {
      endpoints.version += 1;
    },
  };
  const event = {
    id: EVENT,
    tenant: 'acme',
    type: 'a.b',
    data: Buffer.from('1'),
    idempotencyKey: null,
    schemaVersion: null,
    headers: null,
  };
  const { clock, polls } = createClock();
  /** What the writer said about the pause after each turn. */
  const turns: number[] = [];
  let isTurnFree = true;
  const writer = new FanOutWriter({
    fanOuts,
    eventLookup: { load: async () => new Map([[EVENT, event]]) },
    eventStore: { now: async () => storeNow },
    endpoints,
    router: {
      routeCommitted: (deliveries, commit) => routed.push({ deliveries, isCertain: commit !== null }),
    },
    pace: {
      tryBegin() {
        if (!isTurnFree) return null;
        isTurnFree = false;
        return (leastFactor = 0) => {
          turns.push(leastFactor);
          setImmediate(() => {
            isTurnFree = true;
          });
        };
      },
      waitUntilFree: () => new Promise((resolve) => setImmediate(resolve)),
    },
    clock,
    random: () => 0,
    sliceRows,
    isStoreQuiet,
    onProblem: () => {},
  });
  onTestFinished(() => writer.stop());
  const untilDone = () => vi.waitFor(() => expect([...left.values()].every((n) => n === 0)).toBe(true));
  /** Runs the poll that is due, and returns how often the store was read then. */
  const poll = async (): Promise<number> => {
    const before = reads;
    polls.pop()!();
    await vi.waitFor(() => expect(polls.length).toBeGreaterThan(0));
    return reads - before;
  };
  return { writer, tries, written, routed, turns, polls, poll, untilDone };
}

describe('the fan-out writer', () => {
  test('writes slice after slice, routes what is written, and skips disabled and deleted endpoints', async () => {
    const { writer, written, routed, untilDone } = createWriter({ unwritten: { acme: 6 } });
    writer.start();
    await untilDone();
    const idsOf = (deliveries: readonly { readonly id: Uuid }[]) => deliveries.map(({ id }) => id);
    expect(written.map(({ waiting }) => idsOf(waiting))).toEqual([
      [deliveryIdOf(EVENT, 0), deliveryIdOf(EVENT, 3)],
      [deliveryIdOf(EVENT, 4), deliveryIdOf(EVENT, 5)],
    ]);
    expect(written[0]!.skipped).toEqual([
      { id: deliveryIdOf(EVENT, 1), endpointId: endpointId(1), reason: 'endpoint_disabled' },
      { id: deliveryIdOf(EVENT, 2), endpointId: endpointId(2), reason: 'endpoint_deleted' },
    ]);
    expect(routed.map(({ deliveries }) => idsOf(deliveries.map(({ delivery }) => delivery)))).toEqual(
      written.map(({ waiting }) => idsOf(waiting)),
    );
  });

  test('does not let a clock that jumped ahead delay deliveries: neither its own nor the one of the store', async () => {
    const storeNow = timeOfId(EVENT) + 1_000;
    const young = createWriter({ unwritten: { acme: 1 }, storeNow });
    young.writer.start();
    await young.untilDone();
    expect(young.written[0]!.waiting).toMatchObject([{ dueAt: null }]);
    const old = createWriter({ unwritten: { acme: 1 }, storeNow: storeNow + 120_000 });
    old.writer.start();
    await old.untilDone();
    expect(old.written[0]!.waiting).toMatchObject([{ dueAt: storeNow + 120_000 }]);
    const jumped = createWriter({ unwritten: { acme: 1 }, storeNow: Date.now() + 40 * 86_400_000 });
    jumped.writer.start();
    await jumped.untilDone();
    expect(jumped.written[0]!.waiting[0]!.dueAt).toBeLessThanOrEqual(Date.now());
  });

  test('gives tenants turns and pauses after each slice', async () => {
    const { writer, tries, turns, untilDone } = createWriter({ unwritten: { acme: 12, beta: 4 } });
    writer.start();
    await untilDone();
    expect(tries).toEqual(['acme 4', 'beta 4', 'acme 4', 'acme 4']);
    await vi.waitFor(() => expect(turns).toEqual([1, 1, 1, 1, 0]));
  });

  test('does not read the store again while no event is accepted', async () => {
    let isQuiet = false;
    const { writer, polls, poll } = createWriter({ unwritten: {}, isStoreQuiet: () => isQuiet });
    writer.start();
    await vi.waitFor(() => expect(polls).toHaveLength(1));
    expect(await poll()).toBe(1);
    // A slice may have been committed between the last read and the quiet.
    isQuiet = true;
    expect(await poll()).toBe(1);
    expect(await poll()).toBe(0);
    expect(await poll()).toBe(0);
    isQuiet = false;
    expect(await poll()).toBe(1);
  });

  test('reads the endpoints and writes again if they have changed', async () => {
    const versions: number[] = [];
    const { writer, untilDone } = createWriter({
      unwritten: { acme: 4 },
      onWrite: (_slice, version) => {
        versions.push(version);
        return version < 3 ? 'stale' : 'written';
      },
    });
    writer.start();
    await untilDone();
    expect(versions).toEqual([1, 2, 3]);
  });

  test('halves slices that run into the statement timeout', async () => {
    const { writer, tries, untilDone } = createWriter({
      unwritten: { acme: 60 },
      sliceRows: 16,
      onWrite: ({ endpointIds }) => {
        if (endpointIds.length > 5) throw new StoreError('timeout', 'canceling statement');
        return 'written';
      },
    });
    writer.start();
    await untilDone();
    expect(tries.slice(0, 4)).toEqual(['acme 16', 'acme 8', 'acme 4', 'acme 4']);
    // After ten quick slices it tries a larger one again.
    expect(tries.filter((size) => size === 'acme 8')).toHaveLength(2);
  });

  test('writes the slices of other tenants if one slice always fails', async () => {
    const { writer, tries } = createWriter({
      unwritten: { acme: 4, beta: 8 },
      onWrite: ({ tenant }) => {
        if (tenant === 'acme') throw new StoreError('other', 'broken page');
        return 'written';
      },
    });
    writer.start();
    await vi.waitFor(() => expect(tries.filter((slice) => slice === 'beta 4')).toHaveLength(2));
  });

  test('writes the slices of other tenants if the endpoints of one change all the time', async () => {
    const { writer, tries } = createWriter({
      unwritten: { acme: 4, beta: 8 },
      onWrite: ({ tenant }) => (tenant === 'acme' ? 'stale' : 'written'),
    });
    writer.start();
    await vi.waitFor(() => expect(tries.filter((slice) => slice === 'beta 4')).toHaveLength(2));
  });

  test('tells the owners to look for deliveries in the store if it does not know whether they were written', async () => {
    let isFirst = true;
    const { writer, routed, untilDone } = createWriter({
      unwritten: { acme: 1 },
      onWrite: () => {
        if (!isFirst) return 'written';
        isFirst = false;
        throw new StoreError('outcome_unknown', 'connection lost');
      },
    });
    writer.start();
    await untilDone();
    expect(routed.map(({ isCertain }) => isCertain)).toEqual([false, true]);
  });

  test('does nothing while another process writes, nor after it was stopped', async () => {
    const { writer, tries } = createWriter({ unwritten: { acme: 8 }, onWrite: () => 'busy' });
    writer.runSoon();
    expect(tries).toEqual([]);
    writer.start();
    await vi.waitFor(() => expect(tries).toEqual(['acme 4']));
    await writer.stop();
    writer.runSoon();
    expect(tries).toEqual(['acme 4']);
  });
});
