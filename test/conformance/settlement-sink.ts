import { describe, expect, it } from 'vitest';
import { CLOSED_BREAKER } from '../../src/domain/breaker.ts';
import type { Uuid } from '../../src/domain/ids.ts';
import type { Verdict } from '../../src/domain/outcome.ts';
import type { StoreFixture } from './support/fixture.ts';
import { newId } from './support/ids.ts';
import {
  accept,
  appendOptions,
  batchOf,
  DEAD,
  DELIVERED,
  FAILED,
  HOUR_MS,
  loadAll,
  loadOne,
  newEvent,
  newOutcome,
  newSettlement,
  newStart,
  OPEN_BREAKER,
  retryAt,
  WORKER,
} from './support/records.ts';

const STRANGER = { id: newId(), name: 'worker-2' };

export function describeSettlementSink(getStore: () => StoreFixture): void {
  const prepare = async (): Promise<{ endpointId: Uuid; id: Uuid }> => {
    const endpointId = await getStore().createEndpoint();
    return { endpointId, id: await accept(getStore(), endpointId) };
  };

  describe('settling', () => {
    it('moves a successful delivery to history, with its attempt', async () => {
      const store = getStore();
      const { endpointId, id } = await prepare();
      const attemptId = newId();
      const outcome = newOutcome({
        statusCode: 204,
        responseHeaders: { server: 'x' },
        responseBody: Buffer.from([0, 255]),
      });
      const batch = batchOf([newSettlement(id, endpointId, DELIVERED, { attemptId, outcome })]);
      expect(await store.queue.settle(batch)).toEqual(new Set([id]));
      expect(await store.findDelivery(id)).toEqual({
        place: 'finished',
        status: 'delivered',
        reason: null,
        attempts: 1,
        replays: 0,
      });
      expect(await store.attemptsOf(id)).toMatchObject([
        {
          id: attemptId,
          number: 1,
          outcome: 'delivered',
          worker: 'worker-1',
          trigger: 'auto',
          statusCode: 204,
          responseHeaders: '{"server":"x"}',
          responseBody: Buffer.from([0, 255]),
        },
      ]);
    });

    it('records the deliveries of one request, which share its outcome, and says which of them moved (FAN-4)', async () => {
      const store = getStore();
      const { endpointId, id: first } = await prepare();
      const others = [await accept(store, endpointId), await accept(store, endpointId)] as const;
      const retried = await accept(store, endpointId);
      await store.queue.settle(batchOf([newSettlement(retried, endpointId, retryAt(Date.now()))]));
      const outcome = newOutcome({ responseHeaders: { server: 'x' }, responseBody: Buffer.from('o') });
      const whole = { ...outcome, responseBody: Buffer.from('ok') };
      const settle = (ids: readonly Uuid[]) => {
        const settlementOf = (id: Uuid) =>
          newSettlement(id, endpointId, DELIVERED, { outcome: id === first ? whole : outcome });
        return store.queue.settle(batchOf(ids.map(settlementOf)));
      };
      expect(await settle([first, ...others, retried])).toEqual(new Set([first, ...others]));
      const bodies: unknown[] = [];
      for (const id of [first, ...others]) {
        expect(await store.findDelivery(id)).toMatchObject({
          place: 'finished',
          status: 'delivered',
          attempts: 1,
        });
        const [attempt, ...more] = await store.attemptsOf(id);
        expect(more).toEqual([]);
        expect(attempt).toMatchObject({ number: 1, outcome: 'delivered', statusCode: 200, trigger: 'auto' });
        expect(attempt!.responseHeaders).toBe('{"server":"x"}');
        bodies.push(attempt!.responseBody?.toString());
      }
      expect(bodies).toEqual(['ok', 'o', 'o']);
      expect(await store.findDelivery(retried)).toMatchObject({ place: 'queue', attempts: 1 });
      const outcomes = (await store.attemptsOf(retried)).map(({ outcome }) => outcome);
      expect(outcomes.toSorted()).toEqual(['retry', 'superseded']);
      expect(await settle([first, ...others])).toEqual(new Set());
      const fresh = [await accept(store, endpointId), await accept(store, endpointId)];
      expect(await settle(fresh)).toEqual(new Set(fresh));
    });

    it('of a late retry keeps the start of the next owner, whose request is still on the wire', async () => {
      const store = getStore();
      const { endpointId, id } = await prepare();
      const startedAt = Date.now();
      await store.queue.recordOnWire([{ id, startedAt }]);
      const early = newOutcome({ startedAt: startedAt - 8_000 });
      const retry = retryAt(Date.now() + HOUR_MS);
      await store.queue.settle(batchOf([newSettlement(id, endpointId, retry, { outcome: early })]));
      expect(await loadOne(store, endpointId, id)).toMatchObject({ attempts: 1, startedAt });
    });

    it('of a late retry keeps a requested probe of the next owner, whose request is still on the wire', async () => {
      const store = getStore();
      const { endpointId, id } = await prepare();
      expect(await store.queue.requestProbe(endpointId)).toBe(id);
      const isRequested = async () => (await store.queue.loadProbes()).some((row) => row.id === id);
      const startedAt = Date.now();
      await store.queue.recordOnWire([{ id, startedAt }]);
      const retry = retryAt(Date.now() + HOUR_MS);
      const late = newOutcome({ startedAt: startedAt - 8_000 });
      await store.queue.settle(batchOf([newSettlement(id, endpointId, retry, { outcome: late })]));
      expect(await isRequested()).toBe(true);
      const own = newOutcome({ startedAt });
      const settlement = newSettlement(id, endpointId, retry, { attemptsBefore: 1, outcome: own });
      await store.queue.settle(batchOf([settlement]));
      expect(await isRequested()).toBe(false);
    });

    it('of a retry ends its own start', async () => {
      const store = getStore();
      const { endpointId, id } = await prepare();
      const startedAt = Date.now();
      await store.queue.recordOnWire([{ id, startedAt }]);
      const retry = retryAt(Date.now() + HOUR_MS);
      const outcome = newOutcome({ startedAt: startedAt + 5 });
      await store.queue.settle(batchOf([newSettlement(id, endpointId, retry, { outcome })]));
      expect(await loadOne(store, endpointId, id)).toMatchObject({ attempts: 1, startedAt: null });
    });

    it('schedules a retry and counts one more attempt', async () => {
      const store = getStore();
      const { endpointId, id } = await prepare();
      const dueAt = Date.now() + HOUR_MS;
      await store.queue.settle(batchOf([newSettlement(id, endpointId, retryAt(dueAt))]));
      const { due } = await loadAll(store, endpointId);
      expect(due).toMatchObject([
        { id, attempts: 1, attemptsBeforeReplay: 0, dueAt, lastErrorClass: 'http_5xx', trigger: 'auto' },
      ]);
      expect(await store.attemptsOf(id)).toMatchObject([{ number: 1, outcome: 'retry' }]);
    });

    it('makes a dead letter, with or without a last attempt', async () => {
      const store = getStore();
      const { endpointId, id } = await prepare();
      const unsent = await accept(store, endpointId);
      const crash: Verdict = { kind: 'dead', reason: 'worker_crash', disableEndpoint: false };
      const { agesFrom } = await loadOne(store, endpointId, unsent);
      await store.queue.settle(
        batchOf([
          newSettlement(id, endpointId, DEAD),
          newSettlement(unsent, endpointId, crash, { attempted: false, agesFrom }),
        ]),
      );
      const dead = { place: 'dead_letters', status: 'dead', replays: 0 };
      expect(await store.findDelivery(id)).toEqual({ ...dead, reason: 'exhausted', attempts: 1 });
      expect(await store.findDelivery(unsent)).toEqual({ ...dead, reason: 'worker_crash', attempts: 0 });
      expect(await store.attemptsOf(unsent)).toEqual([]);
    });

    it('keeps a retry in the order of acceptance if the endpoint has become FIFO', async () => {
      const store = getStore();
      const { endpointId, id } = await prepare();
      const retry = newSettlement(id, endpointId, retryAt(Date.now() + HOUR_MS), { fifo: true });
      await store.queue.settle(batchOf([retry]));
      expect((await loadAll(store, endpointId)).fresh).toMatchObject([{ id }]);
    });

    it('settles 1,000 deliveries with their bodies in one call', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint();
      const events = Array.from({ length: 1_000 }, () => newEvent({ endpointIds: [endpointId] }));
      await store.eventStore.append(events, await appendOptions(store));
      const deliveryIds = events.map(({ deliveries }) => deliveries[0]!.id);
      const settlements = deliveryIds.map((id, i) =>
        newSettlement(id, endpointId, DELIVERED, {
          outcome: newOutcome({ responseBody: Buffer.from(`body ${i}`) }),
        }),
      );
      expect(await store.queue.settle(batchOf(settlements))).toEqual(new Set(deliveryIds));
      for (const i of [0, 499, 999])
        expect((await store.attemptsOf(deliveryIds[i]!))[0]!.responseBody!.toString()).toBe(`body ${i}`);
    });

    it('stores answers of receivers with any characters', async () => {
      const store = getStore();
      const { endpointId, id } = await prepare();
      const outcome = {
        ...FAILED,
        error: { class: 'http_5xx' as const, message: 'a\u0000b \ud800 c' },
        responseHeaders: { 'x-odd': 'a\u0000b \udfff c' },
        responseBody: Buffer.from([0xff, 0x00, 0xfe]),
      };
      await store.queue.settle(batchOf([newSettlement(id, endpointId, DEAD, { outcome })]));
      const [attempt] = await store.attemptsOf(id);
      expect(attempt!.errorMessage).toBe('a\ufffdb \ufffd c');
      expect(attempt!.responseBody).toEqual(outcome.responseBody);
      expect(JSON.parse(attempt!.responseHeaders!)).toHaveProperty('x-odd');
    });

    it.each([
      ['a status code that no receiver can send', { outcome: newOutcome({ statusCode: 40_000 }) }, DELIVERED],
      ['a retry after the end of time', {}, retryAt(1e19)],
    ])('refuses the whole batch for %s', async (_, parts, verdict) => {
      const store = getStore();
      const { endpointId, id } = await prepare();
      const bad = await accept(store, endpointId);
      const batch = batchOf([
        newSettlement(id, endpointId, DELIVERED),
        newSettlement(bad, endpointId, verdict, parts),
      ]);
      await expect(store.queue.settle(batch)).rejects.toMatchObject({ failure: 'invalid_row' });
      expect(await store.findDelivery(id)).toMatchObject({ status: 'waiting', attempts: 0 });
      expect(await store.attemptsOf(id)).toEqual([]);
    });
  });

  describe('settling again', () => {
    it.each([
      ['delivered', DELIVERED],
      ['retry', retryAt(Date.now() + HOUR_MS)],
      ['dead', DEAD],
    ] as const)(
      'changes nothing when a batch (%s) is repeated after a lost answer',
      async (outcome, verdict) => {
        const store = getStore();
        const { endpointId, id } = await prepare();
        const batch = batchOf([newSettlement(id, endpointId, verdict)]);
        await store.unreliable.loseNextAnswer();
        await expect(store.unreliable.queue.settle(batch)).rejects.toMatchObject({
          failure: 'outcome_unknown',
        });
        const stored = await store.findDelivery(id);
        expect(await store.unreliable.queue.settle(batch)).toEqual(new Set());
        expect(await store.findDelivery(id)).toEqual(stored);
        expect(await store.attemptsOf(id)).toMatchObject([{ number: 1, outcome }]);
      },
    );

    it('settles a batch whose request was lost', async () => {
      const store = getStore();
      const { endpointId, id } = await prepare();
      const batch = batchOf([newSettlement(id, endpointId, DELIVERED)]);
      await store.unreliable.loseNextRequest();
      await expect(store.unreliable.queue.settle(batch)).rejects.toMatchObject({
        failure: 'outcome_unknown',
      });
      expect(await store.findDelivery(id)).toMatchObject({ status: 'waiting' });
      expect(await store.unreliable.queue.settle(batch)).toEqual(new Set([id]));
    });

    it('accepts one of two workers that settle the same attempt, and logs the other attempt as superseded', async () => {
      const store = getStore();
      const { endpointId, id } = await prepare();
      const other = await accept(store, endpointId);
      const late = newSettlement(id, endpointId, DEAD);
      await store.queue.settle(batchOf([newSettlement(id, endpointId, DELIVERED)]));
      const batch = batchOf([late, newSettlement(other, endpointId, DELIVERED)], { worker: STRANGER });
      expect(await store.queue.settle(batch)).toEqual(new Set([other]));
      expect(await store.findDelivery(id)).toMatchObject({ status: 'delivered', attempts: 1 });
      const outcomes = (await store.attemptsOf(id)).map(({ number, outcome, worker }) => [
        number,
        outcome,
        worker,
      ]);
      expect(outcomes.toSorted()).toEqual([
        [1, 'delivered', 'worker-1'],
        [1, 'superseded', 'worker-2'],
      ]);
    });

    it('accepts exactly one of many workers that settle at the same moment', async () => {
      const store = getStore();
      const { endpointId, id } = await prepare();
      const dueAt = Date.now() + HOUR_MS;
      const answers = await Promise.all(
        Array.from({ length: 6 }, (_, i) => {
          const ports = i % 2 === 0 ? store : store.unreliable;
          return ports.queue.settle(batchOf([newSettlement(id, endpointId, retryAt(dueAt + i))]));
        }),
      );
      expect(answers.filter((moved) => moved.has(id))).toHaveLength(1);
      expect((await loadOne(store, endpointId, id)).attempts).toBe(1);
      const outcomes = (await store.attemptsOf(id)).map(({ outcome }) => outcome);
      expect(outcomes.filter((outcome) => outcome === 'retry')).toHaveLength(1);
      expect(outcomes.filter((outcome) => outcome === 'superseded')).toHaveLength(5);
    });

    it('does not let a late failure overwrite a newer retry', async () => {
      const store = getStore();
      const { endpointId, id } = await prepare();
      const dueAt = Date.now() + HOUR_MS;
      await store.queue.settle(batchOf([newSettlement(id, endpointId, retryAt(dueAt))]));
      const late = newSettlement(id, endpointId, DEAD);
      expect(await store.queue.settle(batchOf([late]))).toEqual(new Set());
      expect(await loadOne(store, endpointId, id)).toMatchObject({ attempts: 1, dueAt });
    });

    it('does not use the clocks of workers to decide which result is newer', async () => {
      const store = getStore();
      const { endpointId, id } = await prepare();
      const wrongClock = newOutcome({ startedAt: Date.UTC(2001, 0, 1) });
      const first = newSettlement(id, endpointId, retryAt(Date.UTC(2001, 0, 2)), { outcome: wrongClock });
      expect(await store.queue.settle(batchOf([first]))).toEqual(new Set([id]));
      const ahead = newOutcome({ startedAt: Date.UTC(2100, 0, 1) });
      const stale = newSettlement(id, endpointId, DEAD, { outcome: ahead });
      expect(await store.queue.settle(batchOf([stale]))).toEqual(new Set());
      expect(await store.findDelivery(id)).toMatchObject({ status: 'waiting', attempts: 1 });
    });
  });

  describe('settling after a replay', () => {
    const replayOnWire = async (): Promise<{ endpointId: Uuid; id: Uuid }> => {
      const store = getStore();
      const { endpointId, id } = await prepare();
      await store.queue.settle(batchOf([newSettlement(id, endpointId, retryAt(Date.now()))]));
      await store.queue.replay([{ id, endpointId }]);
      return { endpointId, id };
    };

    it.each([
      ['retry', retryAt(Date.now() + HOUR_MS)],
      ['dead', DEAD],
    ] as const)(
      'ignores a failure (%s) that was on the wire when the replay was asked for',
      async (_, verdict) => {
        const store = getStore();
        const { endpointId, id } = await replayOnWire();
        const failure = newSettlement(id, endpointId, verdict, { attemptsBefore: 1 });
        expect(await store.queue.settle(batchOf([failure]))).toEqual(new Set());
        expect(await loadOne(store, endpointId, id)).toMatchObject({ attempts: 1, trigger: 'replay' });
        expect((await store.attemptsOf(id)).map(({ outcome }) => outcome)).toContain('superseded');
      },
    );

    it('records a success that was on the wire, and any result of the replay itself', async () => {
      const store = getStore();
      const first = await replayOnWire();
      const success = newSettlement(first.id, first.endpointId, DELIVERED, { attemptsBefore: 1 });
      expect(await store.queue.settle(batchOf([success]))).toEqual(new Set([first.id]));
      const second = await replayOnWire();
      const failure = newSettlement(second.id, second.endpointId, DEAD, {
        attemptsBefore: 1,
        trigger: 'replay',
      });
      expect(await store.queue.settle(batchOf([failure]))).toEqual(new Set([second.id]));
    });

    it('records first successes together with one whose delivery died and was replayed without any attempt', async () => {
      const store = getStore();
      const usual = await prepare();
      const replayed = await prepare();
      const { agesFrom } = await loadOne(store, replayed.endpointId, replayed.id);
      const expired = newSettlement(replayed.id, replayed.endpointId, DEAD, { attempted: false, agesFrom });
      await store.queue.settle(batchOf([expired]));
      await store.queue.replay([replayed]);
      const gone = await prepare();
      const settle = ({ id, endpointId }: { id: Uuid; endpointId: Uuid }) =>
        newSettlement(id, endpointId, DELIVERED);
      await store.queue.settle(batchOf([settle(gone)]));
      const moved = await store.queue.settle(batchOf([usual, replayed, gone].map(settle)));
      expect(moved).toEqual(new Set([usual.id, replayed.id]));
      expect(await store.findDelivery(usual.id)).toMatchObject({ status: 'delivered', replays: 0 });
      expect(await store.findDelivery(replayed.id)).toMatchObject({ status: 'delivered', replays: 1 });
      expect((await store.attemptsOf(gone.id)).map(({ outcome }) => outcome).sort()).toEqual([
        'delivered',
        'superseded',
      ]);
    });

    it('does not end a delivery without an attempt if a replay has renewed its age', async () => {
      const store = getStore();
      const { endpointId, id } = await prepare();
      const { agesFrom } = await loadOne(store, endpointId, id);
      const expired: Verdict = { kind: 'dead', reason: 'expired', disableEndpoint: false };
      const end = newSettlement(id, endpointId, expired, { attempted: false, agesFrom: agesFrom - 10 });
      await store.queue.replay([{ id, endpointId }]);
      expect(await store.queue.settle(batchOf([end]))).toEqual(new Set());
      const renewed = await loadOne(store, endpointId, id);
      const later = { ...end, agesFrom: renewed.agesFrom };
      expect(await store.queue.settle(batchOf([later]))).toEqual(new Set([id]));
    });

    it('removes the dead letter if its replay succeeds, and updates it if the replay fails', async () => {
      const store = getStore();
      const { endpointId, id } = await prepare();
      const verdicts = [DEAD, DEAD, DELIVERED];
      for (const [attemptsBefore, verdict] of verdicts.entries()) {
        if (attemptsBefore > 0) await store.queue.replay([{ id, endpointId }]);
        const trigger = attemptsBefore === 0 ? 'auto' : 'replay';
        await store.queue.settle(
          batchOf([newSettlement(id, endpointId, verdict, { attemptsBefore, trigger })]),
        );
        const status = verdict === DEAD ? 'dead' : 'delivered';
        expect(await store.findDelivery(id)).toMatchObject({
          status,
          attempts: attemptsBefore + 1,
          replays: attemptsBefore,
        });
      }
    });
  });

  describe('the health of an endpoint', () => {
    const note = (endpointId: Uuid) => ({
      id: newId(),
      endpointId,
      kind: 'posthorn.circuit.opened' as const,
      detail: {},
    });

    it('is written only by the owner of the shard, but attempts of other workers are settled', async () => {
      const store = getStore();
      const { endpointId, id } = await prepare();
      const health = [{ endpointId, breaker: OPEN_BREAKER, failingSince: 1_700_000_000_000 }];
      const endpointNotes = [note(endpointId)];
      const batch = batchOf([newSettlement(id, endpointId, DELIVERED)], { health, endpointNotes });
      expect(await store.queue.settle({ ...batch, worker: STRANGER })).toEqual(new Set([id]));
      const stateOf = async () => (await store.queue.loadStates([endpointId])).get(endpointId)!;
      expect((await stateOf()).breaker).toEqual(CLOSED_BREAKER);
      expect(await store.endpointNoteIds()).not.toContain(endpointNotes[0]!.id);
      await store.queue.settle(batch);
      expect((await stateOf()).breaker).toEqual(OPEN_BREAKER);
    });

    it('keeps the start of a probe when only a hold is written', async () => {
      const store = getStore();
      const { endpointId, id } = await prepare();
      const late = await accept(store, endpointId);
      const stateOf = async () => (await store.queue.loadStates([endpointId])).get(endpointId)!;
      const opened = [{ endpointId, breaker: OPEN_BREAKER, failingSince: 1_700_000_000_000 }];
      await store.queue.settle(batchOf([], { health: opened }));
      const deadline = Date.now() + HOUR_MS;
      const probing = { ...OPEN_BREAKER, circuit: 'half_open' as const, nextProbeAt: deadline };
      const start = newStart(id, endpointId, { probe: { endpointId, breaker: probing } });
      await store.queue.markStarted([start], WORKER.id);
      // The answer to a request that was on the wire when the circuit opened.
      const holdUntil = Date.now() + 30_000;
      const hold = [{ endpointId, breaker: null, failingSince: null, holdUntil }];
      const retry = newSettlement(late, endpointId, retryAt(holdUntil));
      await store.queue.settle(batchOf([retry], { health: hold }));
      expect(await stateOf()).toMatchObject({
        holdUntil,
        breaker: { circuit: 'half_open', nextProbeAt: deadline },
        failingSince: 1_700_000_000_000,
      });
    });

    it('of an endpoint that never failed is only a hold, if only a hold is written', async () => {
      const store = getStore();
      const { endpointId } = await prepare();
      const holdUntil = Date.now() + 30_000;
      const hold = (until: number) => [{ endpointId, breaker: null, failingSince: null, holdUntil: until }];
      await store.queue.settle(batchOf([], { health: hold(holdUntil) }));
      await store.queue.settle(batchOf([], { health: hold(holdUntil - 10_000) }));
      const state = (await store.queue.loadStates([endpointId])).get(endpointId)!;
      expect(state).toMatchObject({ holdUntil, breaker: CLOSED_BREAKER, failingSince: null });
    });

    it('loses a stored hold that was written while a clock was wrong when the next hold is written', async () => {
      const store = getStore();
      const { endpointId } = await prepare();
      const stateOf = async () => (await store.queue.loadStates([endpointId])).get(endpointId)!;
      const [holdUntil, latestHold] = [Date.now() + 30_000, Date.now() + HOUR_MS];
      for (const breaker of [null, OPEN_BREAKER]) {
        const hold = (until: number) =>
          batchOf([], {
            health: [{ endpointId, breaker, failingSince: null, holdUntil: until, latestHold }],
          });
        await store.queue.settle(hold(Date.now() + 40 * 24 * HOUR_MS));
        await store.queue.settle(hold(holdUntil));
        expect(await stateOf()).toMatchObject({ holdUntil });
        // A stored hold that is not later than `latestHold` stays.
        await store.queue.settle(hold(holdUntil - 10_000));
        expect(await stateOf()).toMatchObject({ holdUntil });
      }
    });

    it('gets one note per change, even if a batch is repeated', async () => {
      const store = getStore();
      const { endpointId } = await prepare();
      const endpointNotes = [note(endpointId)];
      const batch = batchOf([], { endpointNotes, worker: WORKER });
      await store.queue.settle(batch);
      await store.queue.settle(batch);
      const ids = await store.endpointNoteIds();
      expect(ids.filter((id) => id === endpointNotes[0]!.id)).toHaveLength(1);
    });
  });
}
