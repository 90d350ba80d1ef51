import { expect, test } from 'vitest';
import { systemClock } from '../../domain/clock.ts';
import type { Problem } from '../../domain/problem.ts';
import type { Authenticator } from '../http/authenticator.ts';
import type { StreamClient } from './stream-client.ts';
import { StreamClients } from './stream-clients.ts';

const LIMITS = { clients: 6, clientsPerKey: 2, clientsPerTenant: 3, bufferBytes: 1024, heartbeatMs: 60_000 };
const SENDER = { headers: {}, socket: {} };

function openClients() {
  const clients = new StreamClients(LIMITS, systemClock, {} as Authenticator);
  return {
    clients,
    open(key: string, tenant: string | null): StreamClient {
      clients.checkLimits({ key, tenant });
      const client = { end: () => {} } as StreamClient;
      clients.add(client, { key, tenant, sender: SENDER });
      return client;
    },
  };
}

test('a key, the keys of a tenant together, and the server have a maximum of live tails', () => {
  const { clients, open } = openClients();
  open('key_1', 'acme');
  open('key_1', 'acme');
  expect(() => open('key_1', 'acme')).toThrow('This key has 2 live tails open, the maximum.');
  const third = open('key_2', 'acme');
  expect(() => open('key_3', 'acme')).toThrow('The keys of this tenant have 3 live tails open together');
  open('key_4', 'other');
  // Keys of the operator have no tenant, so they share no limit.
  open('admin', null);
  open('user:ann', null);
  expect(() => open('user:ben', null)).toThrow('This server has 6 live tails open, the maximum.');
  clients.delete(third);
  open('key_3', 'acme');
  clients.endAll();
});

test('a refusal says what to do and when', () => {
  const { clients, open } = openClients();
  for (const key of ['a', 'b', 'c']) open(key, 'acme');
  expect(() => open('d', 'acme')).toThrow(
    expect.objectContaining<Partial<Problem>>({
      code: 'rate_limited',
      message: expect.stringContaining('Close one, or try again later.'),
      retryAfterSeconds: 10,
    }),
  );
  clients.endAll();
});
