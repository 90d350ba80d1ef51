import { describe, expect, it } from 'vitest';
import { CLOSED_BREAKER } from '../domain/breaker.ts';
import type { Clock } from '../domain/clock.ts';
import type { Uuid } from '../domain/ids.ts';
import type { AttemptOutcome } from '../domain/outcome.ts';
import type { HealthChange, Settlement } from '../ports/delivery-queue.ts';
import type { Pool } from '../postgres/database.ts';
import { Settler } from './settler.ts';

const outcome: AttemptOutcome = {
  startedAt: 0,
  durationMs: 1,
  timing: { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null },
  statusCode: 200,
  error: null,
  url: 'https://a.test/',
  requestHeaders: {},
  responseHeaders: null,
  responseBody: Buffer.from('fine'),
  responseTruncated: false,
  retryAfterMs: null,
};

const settlement = (deliveryId: Uuid, part: Partial<AttemptOutcome> = {}): Settlement => ({
  deliveryId,
  endpointId: 'endpoint',
  tenant: 'acme',
  attemptsBefore: 0,
  verdict: { kind: 'delivered' },
  blocksLane: false,
  fifo: false,
  agesFrom: 0,
  attempt: {
    id: `attempt of ${deliveryId}`,
    outcome: { ...outcome, ...part },
    trigger: 'auto',
    eventType: 'a.b',
    tries: 1,
  },
});

const health = (endpointId: Uuid, consecutiveFailures: number): HealthChange => ({
  endpointId,
  breaker: { ...CLOSED_BREAKER, consecutiveFailures },
  failingSince: null,
});

interface Sent {
  readonly rows: Record<string, unknown>[];
  readonly health: Record<string, unknown>[];
}

/** A settler on a database that says what the test wants it to say about each batch. */
function setUp(answer: (sent: Sent, call: number) => Uuid[] | Error) {
  const sent: Sent[] = [];
  const pauses: number[] = [];
  const clock: Clock = {
    now: () => 0,
    monotonic: () => 0,
    after: (delayMs, task) => {
      pauses.push(delayMs);
      queueMicrotask(task);
      return () => {};
    },
  };
  const pool = {
    query: async ({ name, values }: { name: string; values: unknown[] }) => {
      if (name !== 'settle') return { rows: [] };
      const batch = {
        rows: JSON.parse(values[0] as string),
        health: JSON.parse(values[3] as string),
      } as Sent;
      sent.push(batch);
      const result = answer(batch, sent.length);
      if (result instanceof Error) throw result;
      return { rows: result.map((id) => ({ id })) };
    },
  };
  const settler = new Settler({
    pool: pool as unknown as Pool,
    clock,
    batchRows: 10,
    worker: () => ({ id: 'w', name: 'w' }),
    failed: () => {},
  });
  return { settler, sent, pauses };
}

const idsOf = ({ rows }: Sent) => rows.map((row) => row.delivery_id as Uuid);
const refused = (code: string) => Object.assign(new Error(code), { severity: 'ERROR', code });

async function settleAll(settler: Settler, settlements: readonly Settlement[]): Promise<Map<Uuid, boolean>> {
  const done = new Map<Uuid, boolean>();
  for (const one of settlements) settler.settle(one, null, (moved) => done.set(one.deliveryId, moved));
  await settler.drained();
  return done;
}

describe('the settler', () => {
  it('writes what came together in one statement, and says what was moved', async () => {
    const { settler, sent } = setUp((batch) => idsOf(batch).filter((id) => id !== 'b'));
    const done = await settleAll(
      settler,
      ['a', 'b', 'c'].map((id) => settlement(id)),
    );
    expect(sent).toHaveLength(1);
    expect([...done]).toEqual([
      ['a', true],
      ['b', false],
      ['c', true],
    ]);
  });

  it('finds the one bad row, writes its neighbours, and of it what is certainly storable', async () => {
    const { settler, sent } = setUp((batch) =>
      batch.rows.some((row) => row.response_headers !== undefined) ? refused('22021') : idsOf(batch),
    );
    const ids = Array.from({ length: 8 }, (_, i) => `d${i}`);
    const done = await settleAll(
      settler,
      ids.map((id) => settlement(id, id === 'd5' ? { responseHeaders: { bad: 'x' } } : {})),
    );
    expect([...done.values()].every(Boolean)).toBe(true);
    expect(done.size).toBe(8);
    const minimal = sent.flatMap(({ rows }) => rows).findLast((row) => row.delivery_id === 'd5')!;
    expect(minimal).toMatchObject({ verdict: 'delivered', truncated: true, status_code: 200 });
    // Halving finds it in a few statements.
    expect(sent.length).toBeLessThanOrEqual(8);
  });

  it('never gives an outcome up: it tries again, more and more slowly, until the database is back', async () => {
    const { settler, pauses } = setUp((batch, call) => (call <= 9 ? new Error('gone') : idsOf(batch)));
    const done = await settleAll(settler, [settlement('a')]);
    expect(done.get('a')).toBe(true);
    expect(pauses).toEqual([50, 100, 200, 300, 300, 300, 300, 300, 300]);
  });

  it('writes the last word about an endpoint, once', async () => {
    const { settler, sent } = setUp(idsOf);
    for (let i = 1; i <= 3; i += 1) settler.settle(settlement(`d${i}`), health('0190-00', i), () => {});
    await settler.drained();
    expect(sent[0]!.health).toMatchObject([{ consecutive_failures: 3 }]);
  });
});
