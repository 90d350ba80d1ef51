import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../../test/support/eventually.ts';
import { systemClock } from '../domain/clock.ts';
import { shardOf } from '../domain/endpoint.ts';
import type { EventContent } from '../domain/event.ts';
import { HandOn } from './hand-on.ts';

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

/** One process of two. What happens in it is said in words. */
async function start(directory: string, number: number, owns: boolean, version: number) {
  const happened: string[] = [];
  const endpoints = {
    version,
    refresh: async () => {
      happened.push('reads the endpoints');
      await new Promise(setImmediate);
      endpoints.version = 9;
    },
  };
  const handOn = new HandOn({
    dispatcher: {
      offer: () => owns,
      offerOfSibling: (delivery, _event, commitSentAt) => {
        happened.push(`gets ${delivery.id === DELIVERY.id} of ${commitSentAt} at ${endpoints.version}`);
        return true;
      },
      wake: () => {},
    },
    endpoints,
    notifier: { publish: () => {} },
    clock: systemClock,
    siblings: { directory, number },
    ownedShards: () => (owns ? [shardOf(ENDPOINT)] : []),
    problem: (what) => happened.push(what),
  });
  onTestFinished(() => handOn.stop());
  await handOn.start();
  return { handOn, happened };
}

test.each([
  ['that it has', 9, []],
  ['that are newer than its own: it reads them first', 8, ['reads the endpoints']],
])(
  'the process that delivers is handed what was matched with endpoints %s',
  async (_what, version, before) => {
    const directory = await mkdtemp(path.join(tmpdir(), 'posthorn-hand-on-test-'));
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
    const accepts = await start(directory, 1, false, 9);
    const delivers = await start(directory, 2, true, version);
    await eventually('it is handed over', () => {
      if (accepts.handOn.told.sibling === 0)
        accepts.handOn.committed([{ delivery: DELIVERY, event: EVENT }], { sentAt: 123, endpointVersion: 9 });
      return delivers.happened.some((what) => what.startsWith('gets'));
    });
    expect(delivers.happened).toEqual([...before, 'gets true of 123 at 9']);
    expect(accepts.handOn.told).toMatchObject({ self: 0, sibling: 1 });
  },
);
