/**
 * How an attack of one tenant changes the answers that another tenant gets: the p99 of its publish requests at a steady rate,
 * before the attack and during it. Each scenario `noisy-*` is one attack.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { median, type Postgres, type Posthorn, percentile, runLoad, startPosthorn } from './harness.ts';
import type { Bench, BenchContext, Figure } from './scenario.ts';

const RATE = 100;
/** How long an attack runs before the measurement begins. */
const LEAD_MS = 500;

export interface Attack {
  readonly name: string;
  /** Completes "p99 of another tenant …". */
  readonly beside: string;
  readonly prepare: (target: Target) => Promise<void>;
  /** Attacks until `signal` is aborted. Resolves when all of its requests have ended. */
  readonly run: (target: Target, signal: AbortSignal) => Promise<void>;
}

export interface Target {
  readonly posthorn: Posthorn;
  readonly postgres: Postgres;
  /** Unique for each run: for names of tenants. */
  readonly run: number;
}

export const noisyBench = (attack: Attack): Bench => ({
  name: `noisy-${attack.name}`,
  run: (context) => measureAttack(attack, context),
});

async function measureAttack(
  attack: Attack,
  { postgres, runs, quick, onProgress }: BenchContext,
): Promise<Figure[]> {
  const seconds = quick ? 4 : 10;
  const before: number[] = [];
  const during: number[] = [];
  for (let run = 1; run <= (quick ? 1 : Math.min(runs, 3)); run += 1) {
    onProgress(`run ${run}`);
    const posthorn = await startPosthorn(postgres);
    const target = { posthorn, postgres, run };
    const measure = async (length: number): Promise<number> => {
      const load = { rate: RATE, seconds: length, connections: 16, tenant: `quiet-${run}` };
      const { latencies, rejected } = await runLoad(posthorn, load);
      if (rejected > 0) throw new Error(`${rejected} events of the other tenant were rejected`);
      return percentile(latencies, 0.99);
    };
    try {
      await attack.prepare(target);
      await measure(2);
      before.push(await measure(seconds));
      const end = new AbortController();
      const attacking = attack.run(target, end.signal);
      await Promise.race([sleep(LEAD_MS), attacking]);
      during.push(await measure(seconds));
      end.abort();
      await attacking;
    } finally {
      await posthorn.stop();
      await postgres.query('truncate posthorn.queue, posthorn.fan_out_slices');
    }
  }
  return [
    { name: 'p99 of another tenant, before', value: median(before), unit: 'ms' },
    { name: `p99 of another tenant ${attack.beside}`, value: median(during), unit: 'ms' },
    {
      name: 'ratio',
      value: median(during.map((p99, run) => p99 / before[run]!)),
      unit: '×',
      id: `noisy_${attack.name.replaceAll('-', '_')}_ratio`,
      goal: { atMost: 1.5 },
      limit: { atMost: 4 },
    },
  ];
}

/** Creates endpoints without the API, which takes milliseconds for each. They are paused: the attack is on accepting. */
export async function insertEndpoints(
  postgres: Postgres,
  { tenant, count, config = {} }: { tenant: string; count: number; config?: object },
): Promise<void> {
  await postgres.query(
    `with next as (update posthorn.subscription_version set version = version + 1 returning version)
     insert into posthorn.endpoints (id, tenant, url, config, paused, version)
     select gen_random_uuid(), $1, 'http://127.0.0.1:9/', $2, true, version from next, generate_series(1, $3::int)`,
    [tenant, config, count],
  );
}

/** Posts a body. Ignores the answer, because Posthorn may refuse the attacker. */
export async function attackWith({ posthorn }: Target, path: string, body: string): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${posthorn.port}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${posthorn.key}`, 'content-type': 'application/json' },
    body,
  });
  await response.arrayBuffer();
}
