import { expect, test } from 'vitest';
import { systemClock } from '../domain/clock.ts';
import type { NewEvent } from '../domain/event.ts';
import type { Pool } from '../postgres/database.ts';
import type { EndpointCache } from '../postgres/endpoint-cache.ts';
import { Acceptor } from './accept.ts';

const event = (idempotencyKey: string | null): NewEvent => ({
  tenant: 'acme',
  type: 'a.b',
  data: Buffer.from('1'),
  idempotencyKey,
  schemaVersion: null,
  channels: [],
  endpointIds: null,
  deliverAt: null,
  headers: null,
});

/** The others of a batch are stored when one of them turns out to be a repetition. */
test('what is stored is answered so, whatever happens while the holder of a key is looked for', async () => {
  const statements: string[] = [];
  const counted: string[] = [];
  const pool = {
    query: async ({ name, values }: { name?: string; values: unknown[] }) => {
      statements.push(name ?? 'another');
      if (name === 'idempotency_key_holders')
        throw Object.assign(new Error('broken page'), { severity: 'ERROR', code: 'XX001' });
      const [stored] = String(values[1]).slice(1, -1).split(',');
      return { rows: [{ version: '1', written: [stored] }] };
    },
  } as unknown as Pool;
  const endpoints = { version: 1, all: () => [], onChange: () => {} } as unknown as EndpointCache;
  const acceptor = new Acceptor({
    pool,
    endpoints,
    clock: systemClock,
    random: Math.random,
    batchRows: 10,
    batchBytes: 1000,
    queueEvents: 10,
    queueBytes: 1000,
    idempotencyTtlMs: 1000,
    tenantPerSecond: 1000,
    tenantBurst: 1000,
    patienceMs: 1000,
    committed: () => {},
    missingPartition: async () => {},
    events: { accepted: (type) => counted.push(type), repeated: () => {}, rematched: () => {} },
  });
  const answers = await Promise.allSettled([acceptor.accept(event(null)), acceptor.accept(event('known'))]);
  expect(answers).toMatchObject([
    { status: 'fulfilled', value: { type: 'a.b' } },
    { status: 'rejected', reason: { message: 'broken page' } },
  ]);
  expect(counted).toEqual(['a.b']);
  expect(statements.filter((name) => name === 'idempotency_key_holders')).toHaveLength(1);
});
