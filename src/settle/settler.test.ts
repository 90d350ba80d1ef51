import { describe, expect, it, onTestFinished } from 'vitest';
import { CLOSED_BREAKER } from '../domain/breaker.ts';
import type { Clock } from '../domain/clock.ts';
import type { Uuid } from '../domain/ids.ts';
import type { AttemptOutcome } from '../domain/outcome.ts';
import type { HealthChange, SettleBatch, Settlement, SettlementSink } from '../ports/delivery-queue.ts';
import { StoreError } from '../ports/store-error.ts';
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

/** A settler on a store whose answers the test chooses. */
function setUp(answer: (sent: SettleBatch, call: number, pauses: number) => Uuid[] | Error, batchRows = 10) {
  const sent: SettleBatch[] = [];
  const pauses: number[] = [];
  // Results that stay blocked are tried again forever, which would slow down all later tests of this process.
  let hasEnded = false;
  onTestFinished(() => {
    hasEnded = true;
  });
  const clock: Clock = {
    now: () => 0,
    monotonic: () => 0,
    after: (delayMs, task) => {
      pauses.push(delayMs);
      // A later turn of the event loop, so that the test can change the answers meanwhile.
      if (!hasEnded) setImmediate(task);
      return () => {};
    },
  };
  const sink: SettlementSink = {
    settle: async (batch) => {
      sent.push(batch);
      const result = answer(batch, sent.length, pauses.length);
      if (result instanceof Error) throw result;
      return new Set(result);
    },
  };
  const settler = new Settler({
    sink,
    clock,
    batchRows,
    lingerMs: 0,
    worker: { workerId: 'w', workerName: 'w' },
    onProblem: () => {},
  });
  return { settler, sent, pauses };
}

const idsOf = ({ settlements }: SettleBatch) => settlements.map(({ deliveryId }) => deliveryId);
const INVALID_ROW = new StoreError('invalid_row', 'refused');

async function settleAll(settler: Settler, settlements: readonly Settlement[]): Promise<Map<Uuid, boolean>> {
  const done = new Map<Uuid, boolean>();
  for (const one of settlements) settler.settle(one, null, (moved) => done.set(one.deliveryId, moved));
  await settler.waitUntilIdle();
  return done;
}

/** A settler whose timers end when the test says so. */
function setUpLingering() {
  const sent: Uuid[][] = [];
  const timers: { delayMs: number; task: () => void }[] = [];
  const settler = new Settler({
    sink: {
      settle: async (batch) => {
        sent.push(idsOf(batch));
        return new Set(idsOf(batch));
      },
    },
    clock: {
      now: () => 0,
      monotonic: () => 0,
      after: (delayMs, task) => {
        const timer = { delayMs, task };
        timers.push(timer);
        return () => void timers.splice(timers.indexOf(timer), 1);
      },
    },
    batchRows: 10,
    lingerMs: 20,
    worker: { workerId: 'w', workerName: 'w' },
    onProblem: () => {},
  });
  const add = (one: Settlement, change: HealthChange | null = null) => settler.settle(one, change, () => {});
  return { settler, sent, timers, add };
}

const turns = async () => {
  for (let turn = 0; turn < 3; turn += 1) await new Promise<void>((resolve) => setImmediate(resolve));
};

describe('results that nothing depends on', () => {
  it('wait for others and share a commit with them', async () => {
    const { sent, timers, add } = setUpLingering();
    add(settlement('a'));
    await turns();
    add(settlement('b'));
    await turns();
    expect(sent).toEqual([]);
    expect(timers.map(({ delayMs }) => delayMs)).toEqual([20]);
    timers[0]!.task();
    await turns();
    expect(sent).toEqual([['a', 'b']]);
  });

  it.each<[string, Settlement, HealthChange | null]>([
    ['a retry', { ...settlement('b'), verdict: { kind: 'retry', dueAt: 1 } }, null],
    ['a success of a FIFO endpoint', { ...settlement('b'), fifo: true }, null],
    ['a success that changes the health of its endpoint', settlement('b'), health('endpoint', 0)],
  ])('wait no longer when %s arrives', async (_, urgent, change) => {
    const { sent, timers, add } = setUpLingering();
    add(settlement('a'));
    add(urgent, change);
    await turns();
    expect(sent).toEqual([['a', 'b']]);
    expect(timers).toEqual([]);
  });

  it('wait no longer when a batch is full or the process stops', async () => {
    const { settler, sent, add } = setUpLingering();
    for (let index = 0; index < 10; index += 1) add(settlement(`full-${index}`));
    await turns();
    expect(sent).toHaveLength(1);
    add(settlement('last'));
    await settler.waitUntilIdle();
    expect(sent[1]).toEqual(['last']);
  });
});

describe('the settler', () => {
  it('records results that arrive together in one batch and reports which deliveries moved', async () => {
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

  it('records two results of one delivery one after the other, and reports that only the first moved it', async () => {
    const moved = new Set<Uuid>();
    const { settler, sent } = setUp((batch) =>
      idsOf(batch).filter((id) => {
        if (moved.has(id)) return false;
        moved.add(id);
        return true;
      }),
    );
    const reports: string[] = [];
    const retry = { ...settlement('a', { statusCode: 500 }), verdict: { kind: 'retry', dueAt: 1 } as const };
    for (const [name, one] of Object.entries({
      failed: retry,
      b: settlement('b'),
      delivered: settlement('a'),
    }))
      settler.settle(one, null, (hasMoved) => reports.push(`${name} ${hasMoved}`));
    await settler.waitUntilIdle();
    expect(reports).toEqual(['failed true', 'b true', 'delivered false']);
    expect(sent.map(idsOf)).toEqual([['a', 'b'], ['a']]);
  });

  it('does not record a batch again because a callback throws', async () => {
    const { settler, sent } = setUp(idsOf);
    const done: Uuid[] = [];
    for (const id of ['a', 'b', 'c'])
      settler.settle(settlement(id), null, () => {
        done.push(id);
        if (id === 'b') throw new Error('the caller failed');
      });
    await settler.waitUntilIdle();
    expect(sent).toHaveLength(1);
    expect(done).toEqual(['a', 'b', 'c']);
  });

  it('bisects to find an invalid row, and records it without the data of the receiver', async () => {
    const { settler, sent } = setUp((batch) =>
      batch.settlements.some(({ attempt }) => attempt!.outcome.responseHeaders !== null)
        ? INVALID_ROW
        : idsOf(batch),
    );
    const ids = Array.from({ length: 8 }, (_, i) => `d${i}`);
    const done = await settleAll(
      settler,
      ids.map((id) => settlement(id, id === 'd5' ? { responseHeaders: { bad: 'x' } } : {})),
    );
    expect([...done.values()].every(Boolean)).toBe(true);
    expect(done.size).toBe(8);
    const minimal = sent
      .flatMap(({ settlements }) => settlements)
      .findLast(({ deliveryId }) => deliveryId === 'd5')!;
    expect(minimal).toMatchObject({
      verdict: { kind: 'delivered' },
      attempt: { outcome: { responseTruncated: true, statusCode: 200 } },
    });
    // Bisecting takes only a few statements.
    expect(sent.length).toBeLessThanOrEqual(8);
  });

  it('never gives up a result: it retries with growing pauses until the store is back', async () => {
    const { settler, pauses } = setUp((batch, call) =>
      call <= 9 ? new StoreError('unavailable', 'The store is unavailable.') : idsOf(batch),
    );
    const done = await settleAll(settler, [settlement('a')]);
    expect(done.get('a')).toBe(true);
    expect(pauses).toEqual([50, 100, 200, 300, 300, 300, 300, 300, 300]);
  });

  it('sets a result aside that the store refuses for an unknown reason, and records the others at once', async () => {
    const answers = { refusesB: true };
    const { settler, sent, pauses } = setUp((batch) =>
      answers.refusesB && idsOf(batch).includes('b') ? new StoreError('other', 'unknown') : idsOf(batch),
    );
    const order: Uuid[] = [];
    for (const id of ['a', 'b', 'c', 'd'])
      settler.settle(settlement(id), null, () => {
        order.push(id);
        // All others are recorded: from now on the store takes it.
        if (order.length === 3) answers.refusesB = false;
      });
    await expect.poll(() => order).toEqual(['a', 'c', 'd', 'b']);
    expect(pauses).toEqual([30_000]);
    expect(idsOf(sent.at(-1)!)).toEqual(['b']);
  });

  it('keeps the longest time that a receiver asked to wait, whichever result of a batch said so', async () => {
    const { settler, sent } = setUp(idsOf);
    settler.settle(settlement('a'), { ...health('e', 1), holdUntil: 5_000 }, () => {});
    settler.settle(settlement('b'), health('e', 2), () => {});
    await settler.waitUntilIdle();
    expect(sent[0]!.health).toEqual([{ ...health('e', 2), holdUntil: 5_000 }]);
  });

  it('records only the latest health of an endpoint', async () => {
    const { settler, sent } = setUp(idsOf);
    for (let i = 1; i <= 3; i += 1) settler.settle(settlement(`d${i}`), health('0190-00', i), () => {});
    await settler.waitUntilIdle();
    expect(sent[0]!.health).toMatchObject([{ breaker: { consecutiveFailures: 3 } }]);
  });

  it.each(['conflict', 'timeout', 'missing_partition'] as const)(
    'records all other results if a single one fails with %s, and repeats that one until it is recorded',
    async (failure) => {
      const { settler, sent, pauses } = setUp((batch, _call, paused) =>
        paused === 0 && idsOf(batch).includes('d5') ? new StoreError(failure, 'locked') : idsOf(batch),
      );
      const order: Uuid[] = [];
      const ids = Array.from({ length: 8 }, (_, i) => `d${i}`);
      for (const id of ids)
        settler.settle(settlement(id, { responseHeaders: { a: 'b' } }), null, () => order.push(id));
      await expect.poll(() => order.length).toBe(8);
      expect(order.at(-1)).toBe('d5');
      expect(pauses).toEqual([1_000]);
      // Only the first try waits for locks, and nothing of the receiver is lost.
      expect(sent.map(({ givesUpSoon }) => givesUpSoon)).toEqual([false, ...sent.slice(1).map(() => true)]);
      expect(sent.at(-1)!.settlements[0]!.attempt!.outcome.responseHeaders).toEqual({ a: 'b' });
      expect(settler.blockedResults).toBe(0);
    },
  );

  it('records results that arrive after a blocked one without waiting for it', async () => {
    const isBlocked = { a: true };
    const { settler } = setUp((batch) =>
      isBlocked.a && idsOf(batch).includes('a') ? new StoreError('conflict', 'locked') : idsOf(batch),
    );
    const done: Uuid[] = [];
    settler.settle(settlement('a'), null, () => done.push('a'));
    await expect.poll(() => settler.countBlocked('endpoint')).toBe(1);
    settler.settle(settlement('b'), null, () => {
      done.push('b');
      isBlocked.a = false;
    });
    await expect.poll(() => done).toEqual(['b', 'a']);
  });

  it('records the results of other endpoints within a few statements if all rows of one endpoint are locked', async () => {
    const { settler, sent } = setUp(
      (batch) =>
        batch.settlements.some(({ endpointId }) => endpointId === 'locked')
          ? new StoreError('conflict', 'locked')
          : idsOf(batch),
      200,
    );
    const done: Uuid[] = [];
    for (let i = 0; i < 100; i += 1) {
      settler.settle({ ...settlement(`locked-${i}`), endpointId: 'locked' }, null, () => {});
      settler.settle({ ...settlement(`d${i}`), endpointId: `e${i % 10}` }, null, () => done.push(`d${i}`));
    }
    await expect.poll(() => done.length).toBe(100);
    const last = sent.findLastIndex((batch) => idsOf(batch).some((id) => id.startsWith('d')));
    expect(last).toBeLessThan(10);
  });

  it('records the results of other endpoints at once, however many results of a locked endpoint keep coming', async () => {
    let added = 0;
    const statements: number[] = [];
    const addSome = (): void => {
      added += 1;
      for (let n = 0; n < 20; n += 1)
        settler.settle({ ...settlement(`locked-${added}-${n}`), endpointId: 'locked' }, null, () => {});
      const before = sent.length;
      settler.settle({ ...settlement(`d${added}`), endpointId: 'other' }, null, () =>
        statements.push(sent.length - before),
      );
    };
    const { settler, sent } = setUp((batch, call) => {
      if (call <= 60) addSome();
      const isLocked = batch.settlements.some(({ endpointId }) => endpointId === 'locked');
      return isLocked ? new StoreError('conflict', 'locked') : idsOf(batch);
    }, 200);
    addSome();
    await expect.poll(() => statements.length).toBe(61);
    // The last one has a shared batch of its own, which begins in a later turn of the event loop.
    expect(Math.max(...statements.slice(0, 60))).toBeLessThan(10);
  });

  it('never replaces the health of an endpoint by an earlier one, although its result is recorded later', async () => {
    const isBlocked = { a: true };
    const { settler, sent } = setUp((batch) =>
      isBlocked.a && idsOf(batch).includes('a') ? new StoreError('conflict', 'locked') : idsOf(batch),
    );
    const done: Uuid[] = [];
    const add = (id: Uuid, failures: number) =>
      settler.settle(settlement(id), health('endpoint', failures), () => {
        done.push(id);
        if (id === 'b') isBlocked.a = false;
      });
    add('a', 1);
    await expect.poll(() => settler.blockedResults).toBe(1);
    add('b', 2);
    await expect.poll(() => done.toSorted()).toEqual(['a', 'b']);
    const stored = sent.filter((batch) => !idsOf(batch).includes('a') || !isBlocked.a);
    expect(stored.at(-1)!.health).toMatchObject([{ breaker: { consecutiveFailures: 2 } }]);
  });

  it('stops halving if everything is locked, and records everything once the lock is gone', async () => {
    const isLocked = { all: true };
    const { settler, sent } = setUp(
      (batch) => (isLocked.all ? new StoreError('conflict', 'locked') : idsOf(batch)),
      400,
    );
    const done = new Set<Uuid>();
    for (let i = 0; i < 400; i += 1) settler.settle(settlement(`d${i}`), null, () => done.add(`d${i}`));
    await expect.poll(() => settler.blockedResults).toBe(400);
    await expect.poll(() => sent.length).toBeGreaterThan(30);
    const tries = sent.length;
    isLocked.all = false;
    await expect.poll(() => done.size).toBe(400);
    expect(sent.length - tries).toBeLessThan(60);
  });
});
