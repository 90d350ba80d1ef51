import { expect, test } from 'vitest';
import { systemClock } from '../domain/clock.ts';
import type { NewEvent } from '../domain/event.ts';
import { newEventId } from '../domain/ids.ts';
import type { EventStore } from '../ports/event-store.ts';
import { StoreError } from '../ports/store-error.ts';
import { Acceptor } from './accept.ts';
import { AcceptObservers } from './accept-observers.ts';
import { Admission } from './admission.ts';
import { BatchWriter } from './batch-writer.ts';
import { CommittedEvents } from './committed-events.ts';
import { KnownTenants } from './known-tenants.ts';
import { StoreQueue } from './store-queue.ts';
import { Subscriptions } from './subscriptions.ts';

const event = (idempotencyKey: string | null, type = 'a.b'): NewEvent => ({
  tenant: 'acme',
  type,
  data: Buffer.from('1'),
  idempotencyKey,
  schemaVersion: null,
  channels: [],
  endpointIds: null,
  deliverAt: null,
  headers: null,
});

const clock = systemClock;
const endpoints = { version: 1, refresh: async () => {} };

function newWriter(
  eventStore: EventStore,
  accepted: string[],
  subscriptions = new Subscriptions(),
): BatchWriter {
  return new BatchWriter({
    eventStore,
    endpoints,
    subscriptions,
    knownTenants: new KnownTenants(eventStore),
    router: { routeCommitted() {} },
    fanOutLimit: { refuseFirst: async () => null },
    observers: new AcceptObservers({
      metrics: { onAccepted: (type) => accepted.push(type), onRepeated() {}, onRematched() {} },
    }),
    clock,
    random: Math.random,
    idempotencyTtlMs: 1000,
    deliveriesPerCommit: 2_000,
    onSliced: () => {},
    giveUpAfterMs: 1000,
  });
}

function newAcceptor(eventStore: EventStore, accepted: string[]): Acceptor {
  const subscriptions = new Subscriptions();
  return new Acceptor({
    admission: new Admission({
      clock,
      endpoints,
      subscriptions,
      tenantRates: { take: () => 0 },
      shedder: { admit: () => true, retryAfterSeconds: 1 },
      queueEvents: 100,
      queueBytes: 100_000,
    }),
    queue: new StoreQueue({
      writer: newWriter(eventStore, accepted, subscriptions),
      clock,
      onSharedBatch() {},
      batchRows: 10,
      batchBytes: 100_000,
    }),
    clock,
  });
}

test('a stored event is answered as stored even if the key lookup for another event of its batch fails', async () => {
  const calls: string[] = [];
  const accepted: string[] = [];
  const eventStore: EventStore = {
    async append(events) {
      calls.push('append');
      return { stale: false, written: new Set([events[0]!.id]) };
    },
    async findKeyHolders() {
      calls.push('findKeyHolders');
      throw new StoreError('other', 'broken page');
    },
    async ensureTenants() {},
    async ensurePartitions() {},
    now: async () => Date.now(),
  };
  const acceptor = newAcceptor(eventStore, accepted);
  const answers = await Promise.allSettled([acceptor.accept(event(null)), acceptor.accept(event('known'))]);
  expect(answers).toMatchObject([
    { status: 'fulfilled', value: { type: 'a.b' } },
    { status: 'rejected', reason: { message: 'broken page' } },
  ]);
  expect(accepted).toEqual(['a.b']);
  expect(calls).toEqual(['append', 'findKeyHolders']);
});

test('a statement timeout halves the batch: only the event that takes too long is answered with 503', async () => {
  const sizes: number[] = [];
  const eventStore: EventStore = {
    async append(events) {
      sizes.push(events.length);
      if (events.some(({ type }) => type === 'slow')) throw new StoreError('timeout', 'statement timeout');
      return { stale: false, written: 'all' };
    },
    findKeyHolders: async () => new Map(),
    async ensureTenants() {},
    async ensurePartitions() {},
    now: async () => Date.now(),
  };
  const acceptor = newAcceptor(eventStore, []);
  const types = ['a', 'b', 'c', 'd', 'e', 'slow', 'g', 'h'];
  const answers = await Promise.allSettled(types.map((type) => acceptor.accept(event(null, type))));
  expect(answers.map(({ status }) => status)).toEqual(
    types.map((type) => (type === 'slow' ? 'rejected' : 'fulfilled')),
  );
  expect(answers[5]).toMatchObject({ reason: { code: 'unavailable', cause: { failure: 'timeout' } } });
  expect(sizes).toEqual([8, 4, 4, 2, 1, 1, 2]);
});

test('a locked idempotency key delays only its own event, which is retried apart from the others and finally answered with 503', async () => {
  const tries: string[] = [];
  const eventStore: EventStore = {
    async append(events) {
      tries.push(events.map(({ type }) => type).join(''));
      if (events.some(({ idempotencyKey }) => idempotencyKey === 'locked'))
        throw new StoreError('conflict', 'lock timeout');
      return { stale: false, written: 'all' };
    },
    findKeyHolders: async () => new Map(),
    async ensureTenants() {},
    async ensurePartitions() {},
    now: async () => Date.now(),
  };
  const acceptor = newAcceptor(eventStore, []);
  const keys = ['1', '2', 'locked', '4'];
  const answers = keys.map((key, n) => acceptor.accept(event(key, 'abcd'[n])));
  const blocked = expect(answers[2]).rejects.toMatchObject({ code: 'unavailable' });
  await Promise.all([answers[0], answers[1], answers[3]]);
  expect(tries.slice(0, 5)).toEqual(['abcd', 'abcd', 'ab', 'cd', 'c']);
  await expect.poll(() => acceptor.waitingEvents).toBe(1);

  // Events that come later with the same key wait behind it, and never share a batch with others.
  const [again] = [acceptor.accept(event('locked', 'e')), await acceptor.accept(event(null, 'f'))];
  await Promise.all([blocked, expect(again).rejects.toMatchObject({ code: 'unavailable' })]);
  expect(tries).toContain('f');
  expect(tries).toContain('e');
  expect(tries.filter((types) => types.length > 1)).toEqual(['abcd', 'abcd', 'ab', 'cd']);
  await acceptor.waitUntilIdle();
  expect(acceptor.waitingEvents).toBe(0);
});

test('an event whose commit got no answer is written again with mayBeStored, even if its tenant is on the bulk path', async () => {
  const tries: boolean[] = [];
  const eventStore: EventStore = {
    async append(_events, { mayBeStored }) {
      tries.push(mayBeStored);
      if (tries.length === 1) throw new StoreError('outcome_unknown', 'connection lost');
      return { stale: false, written: new Set() };
    },
    findKeyHolders: async () => new Map(),
    async ensureTenants() {},
    async ensurePartitions() {},
    now: async () => Date.now(),
  };
  const bulk = {
    has: () => tries.length > 0,
    add: () => expect.unreachable('the bulk path writes new events only'),
  };
  const answer = await new Promise((resolve, reject) => {
    const receivedAt = systemClock.monotonic();
    const item = {
      event: event(null),
      id: newEventId(Date.now()),
      fingerprint: null,
      receivedAt,
      committed: null,
    };
    void newWriter(eventStore, []).write([{ ...item, resolve, reject }], { mayBeStored: false, bulk });
  });
  expect(answer).toMatchObject({ type: 'a.b' });
  expect(tries).toEqual([false, true]);
});

/** Every batch with an event of the tenant `busy` was matched against outdated endpoints. */
function newChangingLog(batches: string[]): EventStore {
  return {
    async append(events) {
      batches.push(events.map(({ tenant }) => tenant).join());
      if (events.some(({ tenant }) => tenant === 'busy')) return { stale: true };
      return { stale: false, written: 'all' };
    },
    findKeyHolders: async () => new Map(),
    async ensureTenants() {},
    async ensurePartitions() {},
    now: async () => Date.now(),
  };
}

test('a tenant whose endpoints change all the time delays only its own events, and these not forever', async () => {
  const batches: string[] = [];
  const acceptor = newAcceptor(newChangingLog(batches), []);
  const accept = (tenant: string) => acceptor.accept({ ...event(null), tenant });
  const busy = Promise.allSettled([accept('busy')]);
  await Promise.all([accept('acme'), accept('globex')]);
  // Written alone in its turn: nobody waits for the other tenant any more.
  await accept('acme');
  expect(batches).toContain('acme');
  expect(await busy).toMatchObject([{ status: 'rejected', reason: { status: 503 } }]);
});

test('committed events of a tenant whose endpoints change all the time do not hold up those of others', async () => {
  const batches: string[] = [];
  const eventStore = newChangingLog(batches);
  const events = new CommittedEvents({ eventStore, writer: newWriter(eventStore, []), clock });
  const committed = ['acme', 'busy', 'globex'].map((tenant, n) => ({
    ...event(null),
    tenant,
    id: newEventId(Date.now()),
    outboxSeq: String(n),
  }));
  const answers = await events.accept(committed);
  expect(answers.map((answer) => (answer instanceof Error ? answer.message : 'stored'))).toEqual([
    'stored',
    expect.stringContaining('changed all the time'),
    'stored',
  ]);
});
