import { expect, test } from 'vitest';
import { systemClock } from '../domain/clock.ts';
import { resolveEndpoint } from '../domain/endpoint-config.ts';
import type { NewEvent } from '../domain/event.ts';
import { newEventId } from '../domain/ids.ts';
import type { EventRecord, EventStore } from '../ports/event-store.ts';
import { Acceptor } from './accept.ts';
import { AcceptObservers } from './accept-observers.ts';
import { Admission } from './admission.ts';
import { BatchWriter } from './batch-writer.ts';
import { CommittedEvents } from './committed-events.ts';
import { KnownTenants } from './known-tenants.ts';
import { StoreQueue } from './store-queue.ts';
import { Subscriptions } from './subscriptions.ts';

const endpointsOf = (tenant: string, count: number) =>
  Array.from({ length: count }, (_, n) => {
    const id = `0190aaaa-0000-7000-8000-${tenant.length}${String(n).padStart(11, '0')}`;
    const record = { id, tenant, url: 'https://a.test/', config: {}, enabled: true, disabledReason: null };
    return resolveEndpoint({ ...record, paused: false, deleted: false }, []);
  });

const event = (tenant: string, data: number): NewEvent => ({
  tenant,
  type: 'a.b',
  data: Buffer.from(String(data)),
  idempotencyKey: null,
  schemaVersion: null,
  channels: [],
  endpointIds: null,
  deliverAt: null,
  headers: null,
});

/** An accept stage in which the tenant "wide" has 700 endpoints, "acme1" has one and "too-wide" has 1,048,577. */
function newIngest(wideCommits: Promise<void> = Promise.resolve()) {
  const commits: (readonly EventRecord[])[] = [];
  const eventStore: EventStore = {
    async append(events) {
      if (events[0]!.tenant === 'wide') await wideCommits;
      commits.push(events);
      return { stale: false, written: 'all' };
    },
    findKeyHolders: async () => new Map(),
    async ensureTenants() {},
    async ensurePartitions() {},
    now: async () => Date.now(),
  };
  const endpoints = { version: 1, refresh: async () => {} };
  const subscriptions = new Subscriptions();
  subscriptions.update([...endpointsOf('wide', 700), ...endpointsOf('acme1', 1)]);
  const match = subscriptions.match.bind(subscriptions);
  const [endpoint] = endpointsOf('too-wide', 1);
  subscriptions.match = (query) =>
    query.tenant === 'too-wide' ? new Array(0x100001).fill(endpoint) : match(query);
  const clock = systemClock;
  const writer = new BatchWriter({
    eventStore,
    endpoints,
    subscriptions,
    knownTenants: new KnownTenants(eventStore),
    router: { routeCommitted() {} },
    fanOutLimit: { refuseFirst: async () => null },
    observers: new AcceptObservers({}),
    clock,
    random: Math.random,
    idempotencyTtlMs: 1000,
    giveUpAfterMs: 1000,
    deliveriesPerCommit: 2_000,
    onSliced: () => {},
  });
  const admission = new Admission({
    clock,
    endpoints,
    subscriptions,
    tenantRates: { take: () => 0 },
    shedder: { admit: () => true, retryAfterSeconds: 1 },
    queueEvents: 100,
    queueBytes: 100_000,
  });
  const queue = new StoreQueue({
    writer,
    clock,
    onSharedBatch() {},
    batchRows: 100,
    batchBytes: 100_000,
  });
  const acceptor = new Acceptor({ admission, queue, clock });
  const committedEvents = new CommittedEvents({ eventStore, writer, clock });
  const shown = () => commits.map((events) => events.map(({ tenant, data }) => `${tenant} ${data}`));
  return { acceptor, committedEvents, shown };
}

test('events of a tenant with a large fan-out are written apart from the others, in order, up to 2,000 deliveries per commit', async () => {
  const { acceptor, shown } = newIngest();
  const wide = [1, 2, 3, 4, 5].map((n) => acceptor.accept(event('wide', n)));
  const acme = acceptor.accept(event('acme1', 6));
  const answers = await Promise.all([...wide, acme]);
  expect(answers.map(({ deliveries }) => deliveries)).toEqual([700, 700, 700, 700, 700, 1]);
  expect(shown().filter(([first]) => first!.startsWith('acme'))).toEqual([['acme1 6']]);
  expect(shown().filter(([first]) => first!.startsWith('wide'))).toEqual([
    ['wide 1', 'wide 2'],
    ['wide 3', 'wide 4'],
    ['wide 5'],
  ]);
  await acceptor.waitUntilIdle();
  expect(acceptor.waitingEvents).toBe(0);
});

test('an event with many deliveries shares no commit with other tenants, even if both fit into one', async () => {
  const { acceptor, shown } = newIngest();
  await Promise.all([acceptor.accept(event('wide', 1)), acceptor.accept(event('acme1', 2))]);
  expect(shown().toSorted()).toEqual([['acme1 2'], ['wide 1']]);
});

test('a tenant fills no more than half of the queue', async () => {
  const gate = Promise.withResolvers<void>();
  const { acceptor } = newIngest(gate.promise);
  const first = Array.from({ length: 50 }, (_, n) => acceptor.accept(event('wide', n)));
  await new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)));
  await expect(acceptor.accept(event('wide', 61))).rejects.toMatchObject({ code: 'overloaded' });
  await expect(acceptor.accept(event('acme1', 62))).resolves.toMatchObject({ deliveries: 1 });
  gate.resolve();
  await Promise.all(first);
});

test('committed events with a large fan-out are written in several commits, in their order', async () => {
  const { committedEvents, shown } = newIngest();
  const tenants = ['wide', 'acme1', 'wide', 'wide', 'acme1', 'wide'];
  const answers = await committedEvents.accept(
    tenants.map((tenant, n) => ({ ...event(tenant, n), id: newEventId(Date.now()), outboxSeq: String(n) })),
  );
  expect(answers).toMatchObject(tenants.map((tenant) => ({ deliveries: tenant === 'wide' ? 700 : 1 })));
  expect(shown()).toEqual([
    ['wide 0', 'acme1 1', 'wide 2'],
    ['wide 3', 'acme1 4', 'wide 5'],
  ]);
});

test('an event that matches more endpoints than it can have deliveries is refused, and nothing of it is stored', async () => {
  const { acceptor, committedEvents, shown } = newIngest();
  const refused = acceptor.accept(event('too-wide', 1));
  await expect(refused).rejects.toMatchObject({ code: 'invalid', status: 422 });
  await expect(refused).rejects.toThrow('matches 1048577 endpoints');
  // Code "invalid" is final: the outbox and a relay reject the event and continue.
  const answers = await committedEvents.accept(
    ['too-wide', 'acme1'].map((tenant, n) => ({
      ...event(tenant, n),
      id: newEventId(Date.now()),
      outboxSeq: String(n),
    })),
  );
  expect(answers).toMatchObject([{ code: 'invalid' }, { deliveries: 1 }]);
  expect(shown()).toEqual([['acme1 1']]);
});
