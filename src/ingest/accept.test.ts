import { expect, test } from 'vitest';
import { systemClock } from '../domain/clock.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import type { NewEvent } from '../domain/event.ts';
import { newId } from '../domain/ids.ts';
import { Acceptor } from './accept.ts';
import { Admission } from './admission.ts';
import type { SchemaCheck } from './schema-check.ts';
import type { SchemaFailures } from './schema-failures.ts';

const emptyQueue = { isStore: true, waitedMs: 0, waitUntilIdle: async () => {} };

test('VER-1: events that wait for a schema count as waiting, so that they cannot fill the memory', async () => {
  const gate = Promise.withResolvers<NewEvent>();
  const acceptor = new Acceptor({
    admission: new Admission({
      clock: systemClock,
      endpoints: { refresh: async () => {} },
      subscriptions: { get: () => undefined },
      tenantRates: { take: () => 0 },
      shedder: { admit: () => true, retryAfterSeconds: 1 },
      queueEvents: 4,
      queueBytes: 10_000,
    }),
    queue: { ...emptyQueue, add: () => expect.unreachable() },
    schemas: {
      check: { check: () => gate.promise } as unknown as SchemaCheck,
      failures: {} as SchemaFailures,
    },
    clock: systemClock,
  });
  const publish = () => acceptor.accept({ tenant: 'acme', type: 'a.b', data: Buffer.from('1') } as NewEvent);

  const waiting = [publish(), publish()].map((accepted) => expect(accepted).rejects.toThrow('no schema'));
  expect(acceptor.waitingEvents).toBe(2);
  await expect(publish()).rejects.toMatchObject({ code: 'overloaded' });
  gate.reject(new Error('no schema'));
  await Promise.all(waiting);
  expect(acceptor.waitingEvents).toBe(0);
});

test('ACC-3: the events of one request keep their order, also if some of them name their endpoints', async () => {
  const stored: string[] = [];
  const acceptor = new Acceptor({
    admission: new Admission({
      clock: systemClock,
      endpoints: { refresh: () => expect.unreachable() },
      subscriptions: { get: () => ({ ordering: 'none' }) as unknown as Endpoint },
      tenantRates: { take: () => 0 },
      shedder: { admit: () => true, retryAfterSeconds: 1 },
      queueEvents: 100,
      queueBytes: 10_000,
    }),
    queue: {
      ...emptyQueue,
      add({ event, resolve }) {
        stored.push(String(event.data));
        resolve({} as never);
      },
    },
    clock: systemClock,
  });
  const named = { endpointIds: [newId(0)], deliverAt: null };
  await Promise.all(
    ['1', '2', '3', '4'].map((data, index) =>
      acceptor.accept({
        tenant: 'acme',
        type: 'a.b',
        data: Buffer.from(data),
        ...(index % 2 === 0 ? named : { endpointIds: null }),
      } as unknown as NewEvent),
    ),
  );
  expect(stored).toEqual(['1', '2', '3', '4']);
});
