import { expect, inject, test } from 'vitest';
import type { faultKinds } from '../../chaos/faults.ts';
import { runChaos } from '../../chaos/run.ts';
import { missingKafka } from '../../support/kafka/broker.ts';
import { needs } from '../../support/needs.ts';

/** CHAOS_SEED=n repeats the choice of faults, but not their exact timing. */
const seed = Number(process.env.CHAOS_SEED ?? Math.floor(Math.random() * 1e6));

/** The faults that concern the accept log. `chaos.test.ts` has the others. */
const kinds = [
  'kill_broker',
  'pause_broker',
  'kill_broker_and_member',
  'kill_worker',
  'kill_api',
  'pause_worker',
  'pull_the_cable',
  'restart_postgres_immediate',
] as const satisfies typeof faultKinds;

test('SCL-2: with Kafka as the accept log, whichever process dies, no accepted event is lost', {
  ...needs(missingKafka()),
  timeout: 480_000,
}, async () => {
  const { story, ...numbers } = await runChaos({
    seed,
    program: inject('program'),
    brokers: 1,
    kinds: [...kinds],
    minMs: 0,
    minFaults: 4,
    minOfEachKind: 0,
    minEvents: 500,
    eventsPerSecond: 45,
    restMs: 300,
    careful: 'never',
    drainMs: 60_000,
  });
  process.stdout.write(`chaos on Kafka: ${JSON.stringify(numbers)}\n`);
  expect(story, story).toBe('');
  expect(numbers.accepted).toBeGreaterThanOrEqual(500);
});
