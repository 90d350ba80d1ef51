import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DebounceSettings } from '../../src/domain/debounce.ts';
import { deliveryIdOf, type Uuid } from '../../src/domain/ids.ts';
import type { Verdict } from '../../src/domain/outcome.ts';
import { DEBOUNCE_PAUSE_MS, type DebounceRequest, MAX_ENDED, MAX_GROUP } from '../../src/ports/debouncer.ts';
import type { StoreFixture } from './support/fixture.ts';
import { eventIdAt, newId } from './support/ids.ts';
import {
  accept,
  appendOptions,
  batchOf,
  DEAD,
  DELIVERED,
  FAILED,
  loadAll,
  newEvent,
  newOutcome,
  newSettlement,
  retryAt,
} from './support/records.ts';

const LAST: DebounceSettings = { key: 'data.order', mode: 'last', windowMs: 1_000, maxWaitMs: 3_000 };
const FIRST: DebounceSettings = { ...LAST, mode: 'first' };
const ON_WIRE_MS = 60_000;
const DAY_MS = 86_400_000;

export function describeDebouncer(getStore: () => StoreFixture, propertyRuns: number): void {
  const open = async (settings = LAST, maxEnded = MAX_ENDED) =>
    new DebouncedEndpoint(getStore(), settings, maxEnded);

  const countWaiting = async (ids: readonly Uuid[]): Promise<number> => {
    const found = await Promise.all(ids.map((id) => getStore().findDelivery(id)));
    return found.filter((delivery) => delivery?.place === 'queue').length;
  };

  describe('debounce in the store (FAN-4)', () => {
    it('sends the newest delivery of a key when its window is over, and ends the others', async () => {
      const endpoint = await open();
      const [old, newest, other] = [
        await endpoint.add(0),
        await endpoint.add(400),
        await endpoint.add(0, 'b'),
      ];
      expect(await endpoint.ask([old, newest], 400)).toEqual(['wait 3000', 'wait 1400']);
      expect(await endpoint.ask([newest, other], 1_400)).toEqual(['send 1', 'send 0']);
      expect(await getStore().findDelivery(old)).toMatchObject({ status: 'skipped', reason: 'debounced' });
    });

    it('sends the same delivery if the call is repeated after a lost answer, and ends the others once', async () => {
      const endpoint = await open();
      const [old, newest] = [await endpoint.add(0), await endpoint.add(400)];
      const { unreliable } = getStore();
      await unreliable.loseNextAnswer();
      await expect(endpoint.ask([newest], 1_400, {}, unreliable)).rejects.toMatchObject({
        failure: 'outcome_unknown',
      });
      expect(await endpoint.ask([newest], 1_500)).toEqual(['send 1']);
      expect(await getStore().findDelivery(old)).toMatchObject({ status: 'skipped', reason: 'debounced' });
    });

    it('ends the older ones of a key early if there are many, and remembers since when they wait', async () => {
      const endpoint = await open();
      const ids: Uuid[] = [];
      for (let n = 0; n <= MAX_GROUP; n += 1) ids.push(await endpoint.add(n));
      const newest = ids.at(-1)!;
      expect(await endpoint.ask([ids[5]!, newest], MAX_GROUP)).toEqual(['drop', `wait ${MAX_GROUP + 1_000}`]);
      expect(await getStore().findDelivery(ids[0]!)).toMatchObject({ reason: 'debounced' });
      const last = await endpoint.add(2_500);
      expect(await endpoint.ask([newest, last], 3_000)).toEqual(['drop', `send ${MAX_GROUP + 1}`]);
    });

    it('max_wait_ms: if it ends the older ones early and the newest is not due, one of them stays to ask again in time', async () => {
      const endpoint = await open();
      const ids: Uuid[] = [];
      for (let n = 0; n <= MAX_GROUP; n += 1) ids.push(await endpoint.add(20 * n));
      const [oldest, second, newest] = [ids[0]!, ids[1]!, ids.at(-1)!];
      expect(await endpoint.ask([oldest, second], 2_000)).toEqual(['wait 3000', 'drop']);
      expect(await countWaiting(ids)).toBe(2);
      expect(await endpoint.ask([oldest], 3_000)).toEqual(['drop']);
      expect(await endpoint.ask([newest], 3_000)).toEqual([`send ${MAX_GROUP}`]);
    });

    it('a delivery that was chosen while the clock was ahead is due as soon as another one of its key asks', async () => {
      const endpoint = await open();
      const [old, chosen] = [await endpoint.add(0), await endpoint.add(10, 'a', 40 * DAY_MS)];
      expect(await endpoint.ask([old], 40 * DAY_MS)).toEqual(['drop']);
      const newer = await endpoint.add(20);
      expect(await endpoint.ask([newer], 30)).toEqual([`wait ${30 + DEBOUNCE_PAUSE_MS}`]);
      const { due } = await loadAll(getStore(), await endpoint.id);
      expect(due.find(({ id }) => id === chosen)!.dueAt).toBeLessThanOrEqual(Date.now() + DAY_MS);
      expect(await endpoint.ask([chosen], 40)).toEqual(['send 1']);
    });

    it('ends a large group in several calls, and sends the newest one after the last of them', async () => {
      const endpoint = await open(LAST, 3);
      const ids: Uuid[] = [];
      for (let n = 0; n < 8; n += 1) ids.push(await endpoint.add(n));
      const [oldest, newest] = [ids[0]!, ids.at(-1)!];
      expect(await endpoint.ask([newest], 1_007)).toEqual(['wait 1007']);
      expect(await countWaiting(ids)).toBe(5);
      // The worker is killed. A newer delivery neither ends the chosen one nor is sent before it.
      const newer = await endpoint.add(1_010);
      expect(await endpoint.ask([newer], 9_000)).toEqual([`wait ${9_000 + DEBOUNCE_PAUSE_MS}`]);
      expect(await countWaiting(ids)).toBe(2);
      expect(await endpoint.ask([newest, newer], 9_000)).toEqual([
        'send 7',
        `wait ${9_000 + DEBOUNCE_PAUSE_MS}`,
      ]);
      expect(await getStore().findDelivery(oldest)).toMatchObject({ status: 'skipped', reason: 'debounced' });
      await endpoint.settle(newest, DELIVERED);
      expect(await endpoint.ask([newer], 9_000)).toEqual(['send 0']);
    });

    it('ends a large group in several calls before its window is over, and remembers since when it waits', async () => {
      const endpoint = await open(LAST, 30);
      const ids: Uuid[] = [];
      for (let n = 0; n < 2 * MAX_GROUP; n += 1) ids.push(await endpoint.add(n));
      const newest = ids.at(-1)!;
      const sendAt = 2 * MAX_GROUP - 1 + LAST.windowMs;
      const before = `wait ${200 + DEBOUNCE_PAUSE_MS}`;
      expect(await endpoint.ask([ids[0]!, newest], 200)).toEqual([before, `wait ${sendAt}`]);
      expect(await countWaiting(ids)).toBe(2 * MAX_GROUP - 30);
      const last = await endpoint.add(2_900);
      for (let calls = 0; ; calls += 1) {
        const [answer] = await endpoint.ask([last], 3_000);
        if (answer === `send ${2 * MAX_GROUP}`) break;
        expect([answer, calls < 10]).toEqual(['wait 3000', true]);
      }
      expect(await countWaiting(ids)).toBe(0);
    });

    it('mode first: ends a large group in several calls', async () => {
      const endpoint = await open(FIRST, 3);
      const ids: Uuid[] = [];
      for (let n = 0; n < 10; n += 1) ids.push(await endpoint.add(n));
      const [first, second, ninth, newest] = [ids[0]!, ids[1]!, ids[8]!, ids[9]!];
      const pause = `wait ${20 + DEBOUNCE_PAUSE_MS}`;
      expect(await endpoint.ask([first, second, ninth, newest], 20)).toEqual([
        'send 0',
        'drop',
        pause,
        'drop',
      ]);
      expect(await countWaiting(ids)).toBe(7);
      await endpoint.settle(first, DELIVERED);
      expect(await endpoint.ask([ninth], 20)).toEqual([pause]);
      expect(await endpoint.ask([ninth], 20)).toEqual(['drop']);
      expect(await countWaiting(ids)).toBe(0);
    });

    it('sends a delivery without a key as it is, and forgets one that has changed', async () => {
      const endpoint = await open();
      const plain = await endpoint.add(0, null);
      const keyed = await endpoint.add(0);
      expect(await endpoint.ask([plain, newId()], 0)).toEqual(['send 0', 'drop']);
      expect(await endpoint.ask([keyed], 5_000, { attempts: 1 })).toEqual(['drop']);
      expect(await endpoint.ask([keyed], 5_000)).toEqual(['send 0']);
    });

    it('chooses the newest one when max_wait_ms is over, and later ones wait until it is sent', async () => {
      const endpoint = await open();
      const ids = [
        await endpoint.add(0),
        await endpoint.add(900),
        await endpoint.add(1_800),
        await endpoint.add(2_700),
      ];
      const [oldest, , , chosen] = ids as [Uuid, Uuid, Uuid, Uuid];
      expect(await endpoint.ask([oldest], 3_000)).toEqual(['drop']);
      const later = await endpoint.add(3_100);
      expect(await endpoint.ask([later], 3_100)).toEqual([`wait ${3_100 + DEBOUNCE_PAUSE_MS}`]);
      expect(await endpoint.ask([chosen, later], 3_200)).toEqual([
        'send 3',
        `wait ${3_200 + DEBOUNCE_PAUSE_MS}`,
      ]);
      await endpoint.settle(chosen, DELIVERED);
      // The window of the later one begins with itself.
      expect(await endpoint.ask([later], 3_200)).toEqual(['wait 4100']);
    });

    it('never ends a delivery that may be on the wire, whoever sent it', async () => {
      const endpoint = await open();
      const sent = await endpoint.add(0);
      expect(await endpoint.ask([sent], 1_000)).toEqual(['send 0']);
      const newer = await endpoint.add(1_100);
      // This worker sent it, or an earlier owner did and was killed.
      for (const underWay of [[sent], []])
        expect(await endpoint.ask([newer], 2_500, { underWay })).toEqual([
          `wait ${2_500 + DEBOUNCE_PAUSE_MS}`,
        ]);
      expect(await getStore().findDelivery(sent)).toMatchObject({ place: 'queue' });
      await endpoint.settle(sent, DELIVERED);
      expect(await endpoint.ask([newer], 2_500)).toEqual(['send 0']);
    });

    it('ends a delivery that was on the wire when its worker died, once its deadline has passed', async () => {
      const endpoint = await open();
      const sent = await endpoint.add(0);
      await endpoint.ask([sent], 1_000);
      const newer = await endpoint.add(1_100);
      expect(await endpoint.ask([newer], 9_000, { onWireMs: -1_000 })).toEqual(['send 1']);
      expect(await getStore().findDelivery(sent)).toMatchObject({ reason: 'debounced' });
    });

    it('ends a delivery that waits for a retry, even if it was chosen', async () => {
      const endpoint = await open();
      const [first, chosen] = [await endpoint.add(0), await endpoint.add(2_900)];
      await endpoint.ask([first], 3_000);
      expect(await endpoint.ask([chosen], 3_000)).toEqual(['send 1']);
      await endpoint.settle(chosen, retryAt(Date.now() + 60_000));
      const newer = await endpoint.add(4_000);
      expect(await endpoint.ask([newer], 5_000)).toEqual(['send 2']);
      expect(await getStore().findDelivery(chosen)).toMatchObject({ reason: 'debounced', attempts: 1 });
    });

    it('ends no delivery of another endpoint, even if the event was first matched with this one', async () => {
      const store = getStore();
      const endpoint = await open();
      const [endpointId, otherId] = [await endpoint.id, await store.createEndpoint()];
      const eventId = eventIdAt(Date.now());
      const matched = { id: eventId, endpointIds: [endpointId], delivery: { debounceKey: 'a' } };
      const outdated = await appendOptions(store, { endpointVersion: -1 });
      await store.eventStore.append([newEvent(matched)], outdated);
      expect(await store.findDelivery(deliveryIdOf(eventId, 0))).toBeNull();
      const other = await accept(store, otherId, { id: eventId });
      const own = await endpoint.add(500);
      expect(await endpoint.ask([own], 1_500)).toEqual(['send 0']);
      expect(await store.findDelivery(other)).toMatchObject({ place: 'queue' });
    });

    it('mode first: sends the first one of a window, and ends the others when it is delivered', async () => {
      const endpoint = await open(FIRST);
      const [first, second, third] = [await endpoint.add(0), await endpoint.add(10), await endpoint.add(20)];
      expect(await endpoint.ask([first, second, third], 20)).toEqual(['send 0', 'drop', 'drop']);
      expect(await getStore().findDelivery(second)).toMatchObject({ reason: 'debounced' });
      expect(await getStore().findDelivery(third)).toMatchObject({ place: 'queue' });
      await endpoint.settle(first, DELIVERED);
      expect(await endpoint.ask([third], 600)).toEqual(['drop']);
      expect(await getStore().findDelivery(third)).toMatchObject({ reason: 'debounced' });
      const next = await endpoint.add(1_000);
      expect(await endpoint.ask([next], 1_000)).toEqual(['send 0']);
    });

    it('mode first: sends the newest one of the window if the first one dies', async () => {
      const endpoint = await open(FIRST);
      const [first, second, third] = [await endpoint.add(0), await endpoint.add(10), await endpoint.add(20)];
      await endpoint.ask([first, second, third], 20);
      await endpoint.settle(first, DEAD);
      expect(await endpoint.ask([third], 600)).toEqual(['send 0']);
    });

    const events = fc.array(
      fc.record({ gap: fc.integer({ min: 0, max: 1_500 }), key: fc.constantFrom('a', 'b') }),
      { minLength: 1, maxLength: 14 },
    );
    const settings = fc.record({
      mode: fc.constantFrom<DebounceSettings['mode']>('last', 'first'),
      windowMs: fc.integer({ min: 1, max: 1_200 }),
      waits: fc.integer({ min: 0, max: 2_500 }),
      maxEnded: fc.constantFrom(1, 2, 5, MAX_ENDED),
    });

    it('sends what a simple model of the windows says, for any times and keys', async () => {
      await fc.assert(
        fc.asyncProperty(events, settings, async (given, { mode, windowMs, waits, maxEnded }) => {
          const rules = { key: 'data.order', mode, windowMs, maxWaitMs: windowMs + waits };
          let at = 0;
          const arrivals = given.map(({ gap, key }) => {
            at += gap;
            return { at, key };
          });
          const endpoint = await open(rules, maxEnded);
          expect(await endpoint.run(arrivals)).toEqual(modelOf(arrivals, rules));
        }),
        { numRuns: propertyRuns },
      );
    });
  });
}

interface Arrival {
  readonly at: number;
  readonly key: string;
}

/** Which arrival is sent, when, and for how many others it stands. */
interface Sent {
  readonly index: number;
  readonly at: number;
  readonly debounced: number;
}

function modelOf(arrivals: readonly Arrival[], settings: DebounceSettings): Sent[] {
  const keys = new Set(arrivals.map(({ key }) => key));
  const modelOfKey = settings.mode === 'last' ? modelLast : modelFirst;
  return [...keys]
    .flatMap((key) =>
      modelOfKey(
        arrivals.flatMap((each, index) => (each.key === key ? [{ index, at: each.at }] : [])),
        settings,
      ),
    )
    .sort((a, b) => a.index - b.index);
}

function modelLast(
  arrivals: readonly { index: number; at: number }[],
  { windowMs, maxWaitMs }: DebounceSettings,
): Sent[] {
  const sent: Sent[] = [];
  let group: { index: number; at: number }[] = [];
  const sendAt = (): number =>
    Math.max(group.at(-1)!.at, Math.min(group.at(-1)!.at + windowMs, group[0]!.at + maxWaitMs));
  const send = (): void => {
    sent.push({ index: group.at(-1)!.index, at: sendAt(), debounced: group.length - 1 });
    group = [];
  };
  for (const arrival of arrivals) {
    if (group.length > 0 && arrival.at > sendAt()) send();
    group.push(arrival);
  }
  send();
  return sent;
}

function modelFirst(
  arrivals: readonly { index: number; at: number }[],
  { windowMs }: DebounceSettings,
): Sent[] {
  const sent: Sent[] = [];
  for (const { index, at } of arrivals)
    if (sent.length === 0 || at >= sent.at(-1)!.at + windowMs) sent.push({ index, at, debounced: 0 });
  return sent;
}

/** An endpoint whose time begins with the test. */
class DebouncedEndpoint {
  readonly #store: StoreFixture;
  readonly #settings: DebounceSettings;
  readonly #start = Date.now();
  readonly #attempts = new Map<Uuid, number>();
  readonly id: Promise<Uuid>;

  readonly #maxEnded: number;

  constructor(store: StoreFixture, settings: DebounceSettings, maxEnded: number) {
    this.#maxEnded = maxEnded;
    this.#store = store;
    this.#settings = settings;
    this.id = store.createEndpoint();
  }

  /** Accepts an event at a time after the start. */
  async add(at: number, debounceKey: string | null = 'a', dueAt?: number): Promise<Uuid> {
    return accept(this.#store, await this.id, {
      id: eventIdAt(this.#start + at),
      delivery: { debounceKey, ...(dueAt !== undefined && { dueAt: this.#start + dueAt }) },
    });
  }

  /** Returns the decisions: `drop`, `wait <until>` or `send <debounced>`. */
  async ask(
    ids: readonly Uuid[],
    at: number,
    more: Partial<DebounceRequest> & { readonly attempts?: number } = {},
    { queue }: Pick<StoreFixture, 'queue'> = this.#store,
  ): Promise<string[]> {
    const { attempts, ...parts } = more;
    const { decisions } = await queue.decideDebounce({
      endpointId: await this.id,
      settings: this.#settings,
      now: this.#start + at,
      asked: ids.map((id) => ({ id, attempts: attempts ?? this.#attempts.get(id) ?? 0 })),
      underWay: [],
      onWireMs: ON_WIRE_MS,
      maxEnded: this.#maxEnded,
      ...parts,
    });
    expect(decisions.size).toBe(ids.length);
    return ids.map((id) => {
      const { kind, until, debounced } = decisions.get(id)!;
      if (kind === 'wait') return `wait ${Math.round(until - this.#start)}`;
      return kind === 'send' ? `send ${debounced}` : kind;
    });
  }

  async settle(id: Uuid, verdict: Verdict): Promise<void> {
    // The request was sent after its start was recorded, at the time of the worker.
    const startedAt = this.#start + ON_WIRE_MS;
    const outcome = verdict.kind === 'delivered' ? newOutcome({ startedAt }) : { ...FAILED, startedAt };
    await this.#store.queue.settle(batchOf([newSettlement(id, await this.id, verdict, { outcome })]));
    this.#attempts.set(id, 1);
  }

  /** Like a lane without limits: asks at once, asks again when told to, and every request succeeds at once. */
  async run(arrivals: readonly Arrival[]): Promise<Sent[]> {
    const ids: Uuid[] = [];
    const agenda = new Map<Uuid, number>();
    const sent: Sent[] = [];
    for (;;) {
      const nextAsk = Math.min(...agenda.values());
      const at = Math.min(arrivals[ids.length]?.at ?? Number.POSITIVE_INFINITY, nextAsk);
      if (at === Number.POSITIVE_INFINITY) return sent.sort((a, b) => a.index - b.index);
      for (let next = arrivals[ids.length]; next?.at === at; next = arrivals[ids.length]) {
        const id = await this.add(at, next.key);
        ids.push(id);
        agenda.set(id, at);
      }
      const due = [...agenda].flatMap(([id, when]) => (when <= at ? [id] : []));
      const answers = await this.ask(due, at);
      for (const [index, id] of due.entries()) {
        const [kind, value] = answers[index]!.split(' ');
        if (kind === 'wait') agenda.set(id, Number(value));
        else agenda.delete(id);
        if (kind !== 'send') continue;
        sent.push({ index: ids.indexOf(id), at, debounced: Number(value) });
        await this.settle(id, DELIVERED);
      }
    }
  }
}
