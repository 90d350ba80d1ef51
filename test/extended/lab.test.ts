/**
 * A short lab: a virtual day of the classes of endpoints of docs/lab.md. It asserts the directions of the results, so that a
 * change of policy cannot make delivery worse unnoticed.
 */
import { beforeAll, expect, test } from 'vitest';
import { type ClassName, classModels, classNames } from '../../lab/fault-models.ts';
import { runPlainLoop } from '../../lab/plain-loop.ts';
import { findPolicy } from '../../lab/policies.ts';
import { buildReceivers, calibrateFaults, type FaultScales } from '../../lab/receivers.ts';
import type { ClassResult, TrialResult } from '../../lab/tally.ts';
import { Traffic } from '../../lab/traffic.ts';
import { lengthOf, runTrial, type Scale } from '../../lab/trial.ts';

const SCALE: Scale = {
  seed: 3,
  days: 1,
  perEndpointHour: 1,
  endpoints: { stable: 50, intermittent: 50, unreliable: 50 },
};

let faults: FaultScales;
const results = new Map<string, TrialResult>();

const classOf = (policy: string, name: ClassName): ClassResult => results.get(policy)!.classes[name];

beforeAll(async () => {
  faults = calibrateFaults({ ...SCALE, lengthMs: lengthOf(SCALE) }, new Traffic(SCALE));
  for (const policy of ['default', 'default, no breaker', 'reference', 'GitHub', 'with replays'])
    results.set(policy, await runTrial(findPolicy(policy), SCALE, faults));
});

test('EVD-2: first attempts succeed as often as the reference system measured, in each class', () => {
  for (const name of classNames) {
    const { firstAttempt, deliveries } = classOf('reference', name);
    expect(deliveries).toBeGreaterThan(800);
    expect(Math.abs(firstAttempt - classModels[name].reference.firstAttempt)).toBeLessThan(0.04);
  }
});

test('EVD-2: the default policy delivers at least as much as the reference system, in each class', () => {
  for (const name of classNames)
    expect(classOf('default', name).final).toBeGreaterThanOrEqual(classOf('reference', name).final);
  expect(classOf('default', 'unreliable').final).toBeGreaterThan(
    classOf('reference', 'unreliable').final + 0.02,
  );
});

test('EVD-2: retries deliver what the first attempts could not', () => {
  for (const name of classNames) {
    const without = classOf('GitHub', name);
    expect(without.final).toBe(without.firstAttempt);
    expect(without.requestsPerDelivery).toBe(1);
    expect(classOf('default', name).final).toBeGreaterThan(without.final);
  }
});

test('HLT-1: the breaker saves requests to unreliable endpoints, and no delivery fails because of it', () => {
  for (const name of classNames)
    expect(classOf('default', name).final).toBeGreaterThanOrEqual(
      classOf('default, no breaker', name).final - 0.005,
    );
  expect(classOf('default', 'unreliable').requestsPerDelivery).toBeLessThan(
    0.8 * classOf('default, no breaker', 'unreliable').requestsPerDelivery,
  );
});

test('DLQ-2: replays deliver much of what died or was skipped', () => {
  for (const name of ['intermittent', 'unreliable'] as const) {
    const [without, replayed] = [classOf('default', name), classOf('with replays', name)];
    expect(1 - replayed.final).toBeLessThan(0.75 * (1 - without.final));
  }
});

test('EVD-2: every delivery ends: delivered, dead or skipped', () => {
  for (const { classes } of results.values())
    for (const name of classNames) {
      const { final, dead, skipped } = classes[name];
      expect(final + dead + skipped).toBeCloseTo(1, 9);
    }
});

test('EVD-2: without a breaker, the engine and a plain loop over its decisions agree', () => {
  const receivers = buildReceivers({ ...SCALE, lengthMs: lengthOf(SCALE) }, faults);
  const { endpoint } = findPolicy('reference');
  const loop = runPlainLoop(receivers, new Traffic(SCALE), endpoint, SCALE.seed);
  for (const name of classNames) {
    const { deliveries, delivered, requests } = loop[name];
    const engine = classOf('reference', name);
    expect(engine.deliveries).toBe(deliveries);
    expect(Math.abs(engine.final - delivered / deliveries)).toBeLessThan(0.02);
    expect(Math.abs(engine.requestsPerDelivery - requests / deliveries)).toBeLessThan(0.1);
  }
});

test('EVD-2: the same seed gives the same result', async () => {
  const again = await runTrial(findPolicy('default'), SCALE, faults);
  expect(again).toEqual(results.get('default'));
});
