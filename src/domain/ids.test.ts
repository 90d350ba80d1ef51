import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  deliveryIdOf,
  deliveryRangeOfEvent,
  eventIdFromForeignId,
  eventIdOfDelivery,
  firstIdAt,
  isEventId,
  maxDeliveriesOf,
  newEventId,
  newId,
  parsePublicId,
  publicId,
  timeOfId,
} from './ids.ts';

const NIL = '00000000-0000-0000-0000-000000000000';
const MAX = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

describe('public ids', () => {
  it.each([
    [NIL, '00000000000000000000000000'],
    ['00000000-0000-0000-0000-000000000001', '00000000000000000000000001'],
    ['00000000-0000-0000-0000-00000000000a', '0000000000000000000000000a'],
    ['00000000-0000-0000-0000-000000000010', '0000000000000000000000000g'],
    ['00000000-0000-0000-0000-000000000020', '00000000000000000000000010'],
    ['0110c853-1d09-52d8-d73e-1194e95b5f19', '0123456789abcdefghjkmnpqrs'],
    ['01890a5d-ac96-774b-bcce-b302099a8057', '01h455vb4pex5vsknk084sn02q'],
    [MAX, '7zzzzzzzzzzzzzzzzzzzzzzzzz'],
  ])('are TypeIDs: %s is %s', (uuid, suffix) => {
    expect(publicId('evt', uuid)).toBe(`evt_${suffix}`);
    expect(parsePublicId('evt', `evt_${suffix}`)).toBe(uuid);
  });

  it('parse back to the same UUID', () => {
    fc.assert(
      fc.property(fc.uuid({ version: [1, 4, 7] }), (uuid) => {
        const text = publicId('dlv', uuid);
        expect(text).toHaveLength('dlv_'.length + 26);
        expect(parsePublicId('dlv', text)).toBe(uuid);
      }),
    );
  });

  it('sort like their UUIDs', () => {
    fc.assert(
      fc.property(fc.uuid(), fc.uuid(), (a, b) => {
        expect(publicId('evt', a) < publicId('evt', b)).toBe(a < b);
      }),
    );
  });

  it.each([
    ['another kind', 'ep_01h455vb4pex5vsknk084sn02q'],
    ['no prefix', '01h455vb4pex5vsknk084sn02q'],
    ['more than 128 bits', 'evt_8zzzzzzzzzzzzzzzzzzzzzzzzz'],
    ['upper case', 'evt_01H455VB4PEX5VSKNK084SN02Q'],
    ['a letter that is not in the alphabet', 'evt_01h455vb4pex5vsknk084sn02u'],
    ['too short', 'evt_01h455vb4pex5vsknk084sn02'],
    ['too long', 'evt_01h455vb4pex5vsknk084sn02qq'],
    ['a line break at its end', 'evt_01h455vb4pex5vsknk084sn02q\n'],
    ['nothing', ''],
  ])('are refused if they are %s', (_, text) => {
    expect(parsePublicId('evt', text)).toBeNull();
  });
});

describe('new ids', () => {
  const at = 4_000_000_000_000;

  it('only grow, also within a millisecond and when the clock goes back', () => {
    let last = newId(at);
    for (let i = 0; i < 10_000; i += 1) {
      const id = newId(at - (i % 7));
      expect(id > last, `${id} after ${last}`).toBe(true);
      last = id;
    }
  });

  it('have version 7 (events: 8) and variant 10, and contain their time', () => {
    const now = at + 60_000;
    for (const [id, version] of [
      [newId(now), 7],
      [newEventId(now + 1), 8],
    ] as const) {
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-[78][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      expect(id[14]).toBe(String(version));
      expect([now, now + 1]).toContain(timeOfId(id));
    }
  });

  const eventIds: readonly [string, () => string, number][] = [
    ['of version 8', () => newEventId(at), 0x100000],
    ['of version 7', () => eventIdFromForeignId(crypto.randomUUID(), at), 0x10000],
  ];
  it('are valid if the clock has fractions of a millisecond', () => {
    const now = Date.now() + 1000.625;
    expect(timeOfId(newId(now))).toBe(Math.trunc(now));
    expect(newId(now)).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  });

  it.each(eventIds)('of events leave room for the ordinals of deliveries (%s)', (_version, create, most) => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: most - 1 }), (ordinal) => {
        const event = create();
        const delivery = deliveryIdOf(event, ordinal);
        expect(isEventId(event)).toBe(true);
        expect(maxDeliveriesOf(event)).toBe(most);
        expect(deliveryIdOf(event, 0)).toBe(event);
        expect(delivery).toHaveLength(36);
        expect(eventIdOfDelivery(delivery)).toBe(event);
        expect(timeOfId(delivery)).toBe(timeOfId(event));
        const [first, last] = deliveryRangeOfEvent(event);
        expect(first <= delivery && delivery <= last).toBe(true);
        expect(eventIdOfDelivery(last)).toBe(event);
        expect(isEventId(delivery)).toBe(ordinal === 0);
      }),
    );
  });

  it('are between the first id of their millisecond and that of the next', () => {
    const now = at + 120_000;
    const id = newId(now);
    expect(firstIdAt(now) <= id).toBe(true);
    expect(id < firstIdAt(now + 1)).toBe(true);
  });

  it('firstIdAt takes any time', () => {
    expect(firstIdAt(-1)).toBe(NIL);
    expect(firstIdAt(2 ** 60)).toBe('ffffffff-ffff-0000-0000-000000000000');
    expect(firstIdAt(1.5)).toBe('00000000-0001-0000-0000-000000000000');
  });
});

describe('the event id for an id of another system', () => {
  const EVENT_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{8}0000$/;

  it('is always the same event id, with the given time', () => {
    fc.assert(
      fc.property(fc.uuid({ version: 4 }), fc.integer({ min: 0, max: 2 ** 47 }), (id, madeAt) => {
        const eventId = eventIdFromForeignId(id, madeAt);
        expect(eventId).toMatch(EVENT_ID);
        expect(timeOfId(eventId)).toBe(madeAt);
        expect(eventIdFromForeignId(id, madeAt)).toBe(eventId);
      }),
    );
  });

  it('has the time of a UUID of version 7, and equals that id if it already is an event id', () => {
    const id = newId(1_700_000_000_000);
    expect(timeOfId(eventIdFromForeignId(id, 0))).toBe(timeOfId(id));
    const eventId = eventIdFromForeignId(id, 0);
    expect(eventIdFromForeignId(eventId, 0)).toBe(eventId);
  });

  it('differs for different ids', () => {
    const ids = Array.from({ length: 2000 }, () => crypto.randomUUID());
    expect(new Set(ids.map((id) => eventIdFromForeignId(id, 5))).size).toBe(ids.length);
  });
});
