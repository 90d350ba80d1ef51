import { expect, inject, test } from 'vitest';
import { type ChaosReport, runChaos } from '../../chaos/run.ts';

/** CHAOS_SEED=n repeats the choice of faults, but not their exact timing. */
const seed = Number(process.env.CHAOS_SEED ?? Math.floor(Math.random() * 1e6));

test('EVD-3 DSP-2 DSP-3 DSP-8 HLT-1 OUT-1: whichever process dies, no accepted event is lost', {
  timeout: 420_000,
}, async () => {
  const report: ChaosReport = await runChaos({
    seed,
    program: inject('program'),
    minMs: 0,
    minFaults: 11,
    minOfEachKind: 0,
    minEvents: 1000,
    eventsPerSecond: 45,
    restMs: 300,
    careful: seed % 2 === 0 ? 'never' : 'default',
    drainMs: 120_000,
  });
  const { story, ...numbers } = report;
  process.stdout.write(`chaos: ${JSON.stringify(numbers)}\n`);
  expect(story, story).toBe('');
  expect(report.accepted).toBeGreaterThanOrEqual(1000);
  expect(report.ordered).toBeGreaterThan(50);
});
