import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../../test/support/eventually.ts';
import { systemClock } from '../domain/clock.ts';
import { shardOf } from '../domain/endpoint.ts';
import type { EventContent } from '../domain/event.ts';
import { newId } from '../domain/ids.ts';
import { CommitRouter } from './commit-router.ts';
import { PeerLinks } from './peer-links.ts';
import { SiblingSockets } from './sibling-sockets.ts';

const ENDPOINT = '01890000-0000-7000-8000-00000000abcd';
const DELIVERY = {
  id: '01890000-0000-7000-8000-000000000001',
  endpointId: ENDPOINT,
  dueAt: null,
  fifo: false,
};
const EVENT: EventContent = {
  id: '01890000-0000-7000-8000-000000000000',
  tenant: 'acme',
  type: 'a.b',
  data: Buffer.from('1'),
  idempotencyKey: null,
  schemaVersion: null,
  headers: null,
};

/** Starts one of two processes. Returns its router, and a log of what it did. */
async function start(directory: string, number: number, owns: boolean, version: number) {
  const actions: string[] = [];
  const onProblem = (what: string): void => void actions.push(what);
  const endpoints = {
    version,
    get: () => undefined,
    refresh: async () => {
      actions.push('reads the endpoints');
      await new Promise(setImmediate);
      endpoints.version = 9;
    },
  };
  const handOver = new PeerLinks({
    id: newId(1_800_000_000_000),
    transports: [new SiblingSockets({ directory, number, clock: systemClock, onProblem })],
    bus: null,
    clock: systemClock,
    onProblem,
  });
  const router = new CommitRouter({
    intake: {
      offer: (delivery, _event, { sentAt }) => {
        if (owns) actions.push(`gets ${delivery.id === DELIVERY.id} of ${sentAt} at ${endpoints.version}`);
        return owns;
      },
    },
    laneKeeper: { wake: () => {}, loadProbes: () => {} },
    endpoints,
    notifier: { publish: () => {} },
    handOver,
    clock: systemClock,
    onProblem,
  });
  handOver.onReceived((deliveries, commit) => router.routeFromSibling(deliveries, commit));
  onTestFinished(() => handOver.stop());
  await handOver.start(() => (owns ? [shardOf(ENDPOINT)] : []));
  return { router, actions };
}

test.each([
  ['that it has', 9, []],
  ['that are newer than its own: it reads them first', 8, ['reads the endpoints']],
])('a sibling gets deliveries that were matched with endpoints %s', async (_what, version, before) => {
  const directory = await mkdtemp(path.join(tmpdir(), 'posthorn-commit-router-test-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const accepts = await start(directory, 1, false, 9);
  const delivers = await start(directory, 2, true, version);
  await eventually('the delivery is handed over', () => {
    if (accepts.router.routeCounts.sibling === 0)
      accepts.router.routeCommitted([{ delivery: DELIVERY, event: EVENT }], {
        sentAt: 123,
        endpointVersion: 9,
      });
    return delivers.actions.some((what) => what.startsWith('gets'));
  });
  expect(delivers.actions).toEqual([...before, 'gets true of 123 at 9']);
  expect(accepts.router.routeCounts).toMatchObject({ self: 0, sibling: 1 });
});
