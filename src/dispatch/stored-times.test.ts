import { describe, expect, test } from 'vitest';
import { CLOSED_BREAKER } from '../domain/breaker.ts';
import type { WaitingDelivery } from '../domain/delivery.ts';
import { resolveEndpoint } from '../domain/endpoint-config.ts';
import { deliveryIdOf, newEventId } from '../domain/ids.ts';
import { HEALTHY } from './healthy-lane.ts';
import { correctDelivery, correctState } from './stored-times.ts';

const NOW = 1_800_000_000_000;
const DAY_MS = 86_400_000;
const CAP_MS = 3_600_000;
const CLOCK = { now: () => NOW };
const endpoint = resolveEndpoint(
  {
    id: '0190aaaa-0000-7000-8000-000000000001',
    tenant: 't',
    url: 'https://receiver.test/',
    config: { timeout_ms: 5_000, retry: { schedule: [0, 30, 7_200], jitter: 'none' } },
    enabled: true,
    disabledReason: null,
    paused: false,
    deleted: false,
  },
  [],
);

describe('a stored state', () => {
  const open = (nextProbeAt: number, cooldownMs = 30_000) => ({
    ...HEALTHY,
    breaker: { ...CLOSED_BREAKER, circuit: 'open' as const, openedAt: NOW - 1, cooldownMs, nextProbeAt },
  });

  test('does not hold the endpoint longer than a Retry-After can, however often it is taken over', () => {
    const held = (holdUntil: number) =>
      correctState({ ...HEALTHY, holdUntil }, endpoint, CLOCK, CAP_MS).holdUntil;
    expect(held(NOW + 40 * DAY_MS)).toBeNull();
    expect(held(NOW + CAP_MS)).toBe(NOW + CAP_MS);
    expect(held(NOW + 1_000)).toBe(NOW + 1_000);
  });

  test('keeps the circuit open no longer than its cooldown, or than a probe can take', () => {
    const probeAt = (state: ReturnType<typeof open>) =>
      correctState(state, endpoint, CLOCK, CAP_MS).breaker.nextProbeAt;
    expect(probeAt(open(NOW + 40 * DAY_MS))).toBe(NOW + 30_000);
    expect(probeAt(open(NOW + 40 * DAY_MS, 10))).toBe(NOW + 8_000);
    expect(probeAt(open(NOW + 20_000))).toBe(NOW + 20_000);
    expect(correctState(HEALTHY, endpoint, CLOCK, CAP_MS)).toEqual({ ...HEALTHY, holdUntil: null });
  });

  test('may have a probe on the wire after a step of the clock', () => {
    const { breaker } = open(NOW - 40 * DAY_MS);
    const probing = { ...HEALTHY, breaker: { ...breaker, circuit: 'half_open' as const } };
    const probeAt = (isSteady: boolean) =>
      correctState(probing, endpoint, { ...CLOCK, isSteady }, CAP_MS).breaker.nextProbeAt;
    expect(probeAt(true)).toBe(NOW - 40 * DAY_MS);
    expect(probeAt(false)).toBe(NOW + 8_000);
  });

  test('has not failed since a time in the future', () => {
    const state = { ...HEALTHY, failingSince: NOW + DAY_MS };
    expect(correctState(state, endpoint, CLOCK, CAP_MS).failingSince).toBe(NOW);
  });
});

describe('a stored delivery', () => {
  const delivery = (acceptedAt: number, part: Partial<WaitingDelivery>): WaitingDelivery => ({
    id: deliveryIdOf(newEventId(acceptedAt), 0),
    endpointId: endpoint.id,
    seq: 1,
    attempts: 0,
    attemptsBeforeReplay: 0,
    dueAt: null,
    agesFrom: acceptedAt,
    trigger: 'auto',
    lastErrorClass: null,
    ...part,
  });
  const correct = (each: WaitingDelivery) => correctDelivery(each, endpoint, NOW, CAP_MS);

  test('that waits for a retry later than any delay is due now', () => {
    expect(correct(delivery(NOW, { attempts: 1, dueAt: NOW + 40 * DAY_MS })).dueAt).toBe(NOW);
    const usual = delivery(NOW, { attempts: 1, dueAt: NOW + 7_200_000 });
    expect(correct(usual)).toEqual(usual);
  });

  test('that was postponed behind another one is due now', () => {
    expect(correct(delivery(NOW, { dueAt: NOW + 40 * DAY_MS })).dueAt).toBe(NOW);
  });

  test('that was replayed is due now', () => {
    const replayed = delivery(NOW, { trigger: 'replay', dueAt: NOW + 40 * DAY_MS });
    expect(correct(replayed).dueAt).toBe(NOW);
  });

  test('that somebody scheduled keeps its time', () => {
    const scheduled = delivery(NOW, { dueAt: NOW + 40 * DAY_MS, agesFrom: NOW + 40 * DAY_MS });
    expect(correct(scheduled)).toEqual(scheduled);
  });

  test('that was accepted while the clock was ahead is due now, and its age begins now', () => {
    const ahead = NOW + 40 * DAY_MS;
    const delayed = delivery(ahead, { dueAt: ahead + 1_000, agesFrom: ahead + 1_000 });
    expect(correct(delayed)).toMatchObject({ dueAt: NOW, agesFrom: NOW });
    expect(correct(delivery(ahead, {}))).toMatchObject({ dueAt: null, agesFrom: NOW });
    const scheduled = delivery(ahead, { dueAt: ahead + DAY_MS, agesFrom: ahead + DAY_MS });
    expect(correct(scheduled).dueAt).toBe(ahead + DAY_MS);
  });
});
