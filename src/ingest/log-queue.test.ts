import { expect, test } from 'vitest';
import { type Clock, systemClock } from '../domain/clock.ts';
import type { NewEvent } from '../domain/event.ts';
import { newEventId, type Uuid } from '../domain/ids.ts';
import {
  BatchTooLargeError,
  type ClaimHolder,
  type EventLog,
  type KeyClaims,
  type LoggedEvent,
} from '../ports/event-log.ts';
import { idempotencyKeyName } from '../ports/event-store.ts';
import { StoreError } from '../ports/store-error.ts';
import { LogQueue } from './log-queue.ts';
import { type AcceptAnswer, fingerprintOf } from './pending-event.ts';
import { tooManyUnwritten } from './store-problems.ts';
import { Subscriptions } from './subscriptions.ts';

const clock: Clock = { ...systemClock, after: (_ms, task) => systemClock.after(0, task) };

interface Parts {
  readonly append?: (partition: number, events: readonly LoggedEvent[]) => Promise<void>;
  readonly claim?: KeyClaims['claim'];
  readonly partitions?: number | null;
  readonly giveUpAfterMs?: number;
  /** The tenant that has too many unwritten deliveries. */
  readonly fullTenant?: string;
}

/** A queue, what was appended, and a function that adds an event. */
function newQueue({ append, claim, partitions = 4, giveUpAfterMs = 1000, fullTenant }: Parts = {}) {
  const appended: { partition: number; events: readonly LoggedEvent[] }[] = [];
  const log: EventLog = {
    partitions,
    async append(partition, events) {
      appended.push({ partition, events });
      await append?.(partition, events);
    },
  };
  const queue = new LogQueue({
    log,
    closedTenants: { load: async () => ({ tenants: new Set(['closed']), readAt: 7 }) },
    claims: { claim: claim ?? (() => expect.unreachable()) },
    subscriptions: new Subscriptions(),
    observers: { onRepeated() {} },
    unwritten: { findProblem: (tenant) => (tenant === fullTenant ? tooManyUnwritten(tenant, 1) : null) },
    clock,
    batchRows: 10,
    batchBytes: 100_000,
    idempotencyTtlMs: 1000,
    giveUpAfterMs,
  });
  const add = (
    data: string,
    { key = null, tenant = 'acme' }: { key?: string | null; tenant?: string } = {},
  ) => {
    const event: NewEvent = {
      tenant,
      type: 'a.b',
      data: Buffer.from(data),
      idempotencyKey: key,
      schemaVersion: null,
      channels: [],
      endpointIds: null,
      deliverAt: null,
      headers: null,
    };
    const id = newEventId(Date.now());
    const accepted = new Promise<AcceptAnswer>((resolve, reject) => {
      const fingerprint = fingerprintOf(event);
      queue.add({ event, id, fingerprint, receivedAt: clock.monotonic(), committed: null, resolve, reject });
    });
    return { id, accepted };
  };
  return { queue, add, appended };
}

const dataOf = (appended: readonly { events: readonly LoggedEvent[] }[]): string[] =>
  appended.flatMap(({ events }) => events.map(({ data }) => String(data)));

const holder = (eventId: Uuid, fingerprint: Buffer, isClaimed: boolean): ClaimHolder => ({
  eventId,
  fingerprint,
  isClaimed,
  deliveries: 3,
  unmatchedReason: null,
  type: 'a.b',
});

/** Claims as the store does: the first event of a key gets it. */
function newClaims(isStored: (id: Uuid) => boolean = () => false): KeyClaims['claim'] {
  const held = new Map<string, ClaimHolder>();
  return async (claims) => {
    const found = new Map<string, ClaimHolder>();
    for (const { tenant, key, eventId, fingerprint } of claims) {
      const name = idempotencyKeyName(tenant, key);
      if (!held.has(name)) held.set(name, holder(eventId, fingerprint, true));
      const known = held.get(name)!;
      found.set(name, { ...known, isClaimed: !isStored(known.eventId) });
    }
    return found;
  };
}

test('an event of a tenant whose data is being deleted gets 409', async () => {
  const { queue, add, appended } = newQueue();
  await add('1').accepted;
  await queue.reloadClosedTenants();
  await expect(add('x', { tenant: 'closed' }).accepted).rejects.toMatchObject({ code: 'conflict' });
  await add('2').accepted;
  expect(dataOf(appended)).toEqual(['1', '2']);
  const readAt = appended.flatMap(({ events }) => events.map((event) => event.closedTenantsReadAt));
  expect(readAt).toEqual([null, 7]);
});

test('all events of a tenant are in one partition, in their order', async () => {
  const { add, appended } = newQueue();
  await Promise.all(['1', '2', '3'].map((data) => add(data).accepted));
  await add('4').accepted;
  expect(dataOf(appended)).toEqual(['1', '2', '3', '4']);
  expect(new Set(appended.map(({ partition }) => partition)).size).toBe(1);
});

test('an event that the log does not confirm is appended again under the same id, before later events of the partition', async () => {
  let failures = 3;
  const { add, appended } = newQueue({
    async append() {
      if (failures-- > 0) throw new Error('NOT_LEADER');
    },
  });
  const first = add('1');
  await new Promise((resolve) => setImmediate(resolve));
  const second = add('2');
  expect((await first.accepted).id).toBe(first.id);
  await second.accepted;
  expect(dataOf(appended)).toEqual(['1', '1', '1', '1', '2']);
  expect(new Set(appended.flatMap(({ events }) => events.map(({ id }) => id))).size).toBe(2);
});

test('an event gets 503 if the log does not confirm it in time, or was never reached', async () => {
  const failing = newQueue({
    giveUpAfterMs: 0,
    append: () => Promise.reject(new Error('NOT_ENOUGH_REPLICAS')),
  });
  await expect(failing.add('1').accepted).rejects.toMatchObject({
    code: 'unavailable',
    retryAfterSeconds: 2,
  });
  const away = newQueue({ partitions: null });
  await expect(away.add('1').accepted).rejects.toMatchObject({ code: 'unavailable', retryAfterSeconds: 2 });
  expect(away.appended).toEqual([]);
});

test('an event whose key is claimed is appended again under the id of the claim', async () => {
  const { add, appended } = newQueue({ claim: newClaims() });
  const first = add('1', { key: 'k' });
  const second = add('1', { key: 'k' });
  expect(await first.accepted).toMatchObject({ id: first.id, duplicate: false });
  expect(await second.accepted).toMatchObject({ id: first.id, duplicate: true });
  const third = add('1', { key: 'k' });
  expect(await third.accepted).toMatchObject({ id: first.id, duplicate: true });
  expect(appended.flatMap(({ events }) => events.map(({ id }) => id))).toEqual([
    first.id,
    first.id,
    first.id,
  ]);
  await expect(add('2', { key: 'k' }).accepted).rejects.toMatchObject({ code: 'idempotency_conflict' });
});

test('an event whose key belongs to a stored event is answered with that event, and nothing is appended', async () => {
  const { add, appended } = newQueue({ claim: newClaims(() => true) });
  const first = add('1', { key: 'k' });
  await first.accepted;
  const second = add('1', { key: 'k' });
  expect(await second.accepted).toMatchObject({ id: first.id, duplicate: true, deliveries: 3 });
  expect(appended).toHaveLength(1);
});

test('while the store does not answer, events with keys get 503, and others are appended, also those that wait behind a key', async () => {
  const { add, appended } = newQueue({
    claim: () => Promise.reject(new StoreError('unavailable', 'no database')),
  });
  const keyed = add('1', { key: 'k' });
  const behind = add('2');
  const other = add('3', { tenant: 'other' });
  await expect(keyed.accepted).rejects.toMatchObject({ code: 'unavailable' });
  await Promise.all([behind.accepted, other.accepted]);
  expect(dataOf(appended).toSorted()).toEqual(['2', '3']);
});

test('an event without a key does not overtake one of its tenant that waits for its claim', async () => {
  const gate = Promise.withResolvers<void>();
  const claim = newClaims();
  const { add, appended } = newQueue({
    async claim(claims, options) {
      await gate.promise;
      return claim(claims, options);
    },
  });
  const events = [add('1', { key: 'k' }), add('2'), add('3', { key: 'l' }), add('4')];
  await add('5', { tenant: 'other' }).accepted;
  expect(dataOf(appended)).toEqual(['5']);
  gate.resolve();
  await Promise.all(events.map(({ accepted }) => accepted));
  expect(dataOf(appended)).toEqual(['5', '1', '2', '3', '4']);
});

test('an event that is too large for the log gets 413, and the others of its batch are appended in their order', async () => {
  const { add, appended } = newQueue({
    async append(_partition, events) {
      if (events.length > 2 || events.some(({ data }) => String(data) === 'huge'))
        throw new BatchTooLargeError('too large');
    },
  });
  const events = ['1', '2', 'huge', '3', '4'].map((data) => add(data));
  const results = await Promise.allSettled(events.map(({ accepted }) => accepted));
  expect(results.map(({ status }) => status)).toEqual([
    'fulfilled',
    'fulfilled',
    'rejected',
    'fulfilled',
    'fulfilled',
  ]);
  expect(results[2]).toMatchObject({ reason: { code: 'too_large' } });
  const confirmed = appended.filter(({ events }) => events.length <= 2 && dataOf([{ events }])[0] !== 'huge');
  expect(dataOf(confirmed)).toEqual(['1', '2', '3', '4']);
});

test('a key that another transaction has locked waits, for a limited time, and other keys of the claim do not wait for it', async () => {
  const claim = newClaims();
  let isLocked = true;
  const { add } = newQueue({
    giveUpAfterMs: 10_000,
    async claim(claims, options) {
      if (isLocked && claims.some(({ key }) => key === 'locked'))
        throw new StoreError('conflict', 'lock timeout');
      return claim(claims, options);
    },
  });
  const locked = add('1', { key: 'locked' });
  const others = ['a', 'b', 'c', 'd', 'e'].map((key) => add(key, { key }));
  const ids = (await Promise.all(others.map(({ accepted }) => accepted))).map(({ id }) => id);
  expect(ids).toEqual(others.map(({ id }) => id));
  // A second request with the key waits, too, and others pass it.
  const repeated = add('1', { key: 'locked' });
  await add('f', { key: 'f' }).accepted;
  isLocked = false;
  // They take turns, so either may be the first.
  const both = await Promise.all([locked.accepted, repeated.accepted]);
  expect(both[0].id).toBe(both[1].id);
  expect(both.map(({ duplicate }) => duplicate).toSorted()).toEqual([false, true]);

  const stuck = newQueue({
    giveUpAfterMs: 0,
    claim: () => Promise.reject(new StoreError('conflict', 'lock timeout')),
  });
  await expect(stuck.add('1', { key: 'k' }).accepted).rejects.toMatchObject({ code: 'unavailable' });
  await stuck.queue.waitUntilIdle();
});

test('a large fan-out of a tenant with too many unwritten deliveries gets 429, also when it is repeated with its key', async () => {
  const { add, appended } = newQueue({ claim: newClaims(), fullTenant: 'full' });
  const refused = [add('1', { tenant: 'full' }), add('2', { tenant: 'full', key: 'k' })];
  for (const { accepted } of refused) await expect(accepted).rejects.toMatchObject({ code: 'rate_limited' });
  await expect(add('2', { tenant: 'full', key: 'k' }).accepted).rejects.toMatchObject({
    code: 'rate_limited',
  });
  await add('3').accepted;
  expect(dataOf(appended)).toEqual(['3']);
});
