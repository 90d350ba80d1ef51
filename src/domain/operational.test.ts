import { describe, expect, it } from 'vitest';
import { Breaker, type BreakerRecord, CLOSED_BREAKER } from './breaker.ts';
import { type CircuitChange, noteOfCircuit } from './operational.ts';

const NOW = 1_800_000_000_000;
const settings = {
  consecutive: 1,
  failureRate: 1,
  minRequests: 10,
  windowSeconds: 60,
  cooldownSeconds: 1,
  maxCooldownSeconds: 8,
};
const outcome: CircuitChange['outcome'] = { statusCode: null, error: { class: 'timeout', message: '' } };

/** The changes of a breaker, and the notes about them. */
function changes(eventType: string): (string | null)[] {
  const breaker = new Breaker(settings);
  const noted: (string | null)[] = [];
  const record = (signal: 'success' | 'failure', wasProbe: boolean): void => {
    const before: BreakerRecord = breaker.record;
    expect(breaker.recordSignal(signal, NOW, wasProbe)).toBe(true);
    const note = noteOfCircuit({
      id: 'a',
      endpointId: 'e',
      eventType,
      before,
      after: breaker.record,
      outcome,
    });
    noted.push(note?.kind ?? null);
  };
  record('failure', false);
  breaker.startProbe(NOW + 1000);
  record('failure', true);
  breaker.startProbe(NOW + 2000);
  record('success', true);
  return noted;
}

describe('OBS-4: notes about circuits', () => {
  it('are made when a circuit opens or closes, but not when it stays open', () => {
    expect(changes('order.created')).toEqual(['posthorn.circuit.opened', null, 'posthorn.circuit.closed']);
  });

  it('are not made when it opens because of operational events', () => {
    expect(changes('posthorn.delivery.dead')).toEqual([null, null, 'posthorn.circuit.closed']);
  });

  it('contain the last answer', () => {
    const after = new Breaker(settings);
    after.recordSignal('failure', NOW, false);
    expect(
      noteOfCircuit({
        id: 'a',
        endpointId: 'e',
        eventType: 'a.b',
        before: CLOSED_BREAKER,
        after: after.record,
        outcome,
      })!.detail,
    ).toEqual({
      opened_at: '2027-01-15T08:00:00.000Z',
      next_probe_at: '2027-01-15T08:00:01.000Z',
      consecutive_failures: 1,
      status_code: null,
      error_class: 'timeout',
    });
  });
});
