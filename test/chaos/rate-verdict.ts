/** DSP-3: checks the rate limits of endpoints. */
import { eventIdOfDelivery, publicId } from '../../src/domain/ids.ts';
import type { RegisteredEndpoint } from './endpoints.ts';
import type { Arrival } from './receivers.ts';
import type { Complaint, Facts } from './verdict.ts';

/** Time on the wire, and until the receiver reads its clock. */
export const WIRE_MS = 250;
/** See `deliver/attempt.ts`. */
const STALE_CONNECTION_MS = 500;

/**
 * Replaces arrival times by the stored start times of attempts: a busy machine or a suspended worker may delay several
 * requests, which then arrive together.
 */
export function withStartTimes(
  { attempts }: Facts,
  { uuid }: RegisteredEndpoint,
  arrivals: readonly Arrival[],
): Arrival[] {
  const starts = new Map(
    attempts
      .filter(({ endpoint }) => endpoint === uuid)
      .map(({ delivery, number, at }) => [`${publicId('evt', eventIdOfDelivery(delivery))} ${number}`, at]),
  );
  return arrivals
    .map((arrival) => {
      const start = starts.get(`${arrival.event} ${arrival.attempt}`) ?? arrival.at;
      return { ...arrival, at: Math.min(start, arrival.at) };
    })
    .toSorted((a, b) => a.at - b.at);
}

/** DSP-3: no window has more requests than the burst plus the rate times its length. */
export function tooFast(
  { name }: RegisteredEndpoint,
  { perSecond, burst }: { perSecond: number; burst: number },
  arrivals: readonly Arrival[],
): Complaint[] {
  const complaints: Complaint[] = [];
  // The wire may delay requests so that they arrive together.
  const capacity = burst + 1 + (perSecond * WIRE_MS) / 1000;
  let level = 0;
  let last = Number.NEGATIVE_INFINITY;
  const resets = new Map<string, number>();
  for (const { at, event, attempt, endedAt, status } of arrivals) {
    // A reset on a reused connection means that it was stale; the same attempt is repeated on a new connection.
    const again = at - (resets.get(`${event} ${attempt}`) ?? Number.NEGATIVE_INFINITY) < STALE_CONNECTION_MS;
    if (status === null) resets.set(`${event} ${attempt}`, endedAt ?? at);
    if (again) continue;
    level = Math.max(0, level - ((at - last) / 1000) * perSecond) + 1;
    last = at;
    if (level <= capacity) continue;
    complaints.push({
      about: `${name} was sent ${level.toFixed(1)} requests beyond its rate, the burst is ${burst}`,
      event,
      at,
    });
    level = 0;
  }
  return complaints;
}
