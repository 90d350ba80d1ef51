/**
 * How a delivery gets from the node that accepts it to the node that delivers it: by NOTIFY and a read, over TLS, and
 * through Redis. Throughput, and processor time per event of the nodes, PostgreSQL and Redis.
 */
import { startRedis, type TestRedis, whyNoRedis } from '../../test/support/redis.ts';
import { compareWithBareLoop, median, type Posthorn, startPosthorn } from '../harness.ts';
import { readPostmasterPid, readTreeSeconds } from '../process-figures.ts';
import type { Bench, BenchContext, Figure } from '../scenario.ts';
import { prepareLoad } from './throughput.ts';

const EVENTS = 30_000;
const BATCHES_OF = [1, 100] as const;

interface Way {
  readonly name: string;
  readonly env: (redis: TestRedis | null) => Record<string, string>;
}

const WAYS: readonly Way[] = [
  { name: 'NOTIFY', env: () => ({}) },
  { name: 'TLS', env: () => ({ POSTHORN_PEER_LISTEN: '127.0.0.1:0' }) },
  { name: 'Redis', env: (redis) => ({ POSTHORN_REDIS_URL: redis!.url }) },
];

export const handOver: Bench = {
  name: 'hand-over',
  async run(context) {
    const redis = whyNoRedis === null ? await startRedis() : null;
    if (redis === null) context.onProgress(`without Redis: ${whyNoRedis}`);
    try {
      const figures: Figure[] = [];
      for (const batch of BATCHES_OF) {
        const ratios = new Map<string, number>();
        for (const way of WAYS.filter(({ name }) => name !== 'Redis' || redis !== null)) {
          const measured = await measureWay(context, way, batch, redis);
          figures.push(...measured.figures);
          ratios.set(way.name, measured.ratio);
        }
        const notify = ratios.get('NOTIFY')!;
        for (const [name, ratio] of ratios)
          if (name !== 'NOTIFY')
            figures.push({
              name: `${titleOf(batch)}: ${name} over NOTIFY`,
              value: ratio / notify,
              unit: '×',
            });
      }
      return figures;
    } finally {
      await redis?.stop();
    }
  },
};

const titleOf = (batch: number): string => (batch === 1 ? 'one by one' : `batches of ${batch}`);

async function measureWay(
  { postgres, receiver, runs, quick, onProgress }: BenchContext,
  way: Way,
  batch: number,
  redis: TestRedis | null,
): Promise<{ figures: Figure[]; ratio: number }> {
  const name = `${titleOf(batch)}, ${way.name}`;
  onProgress(name);
  const nodes: Posthorn[] = [];
  try {
    for (const role of ['api', 'worker'])
      nodes.push(await startPosthorn(postgres, way.env(redis), ['--role', role]));
    const events = EVENTS / (quick ? 6 : 1);
    const tenant = `${way.name.toLowerCase()}-${batch}`;
    const measureRate = await prepareLoad({ batch, events }, tenant, nodes[0]!, postgres, receiver);
    const pids = {
      nodes: nodes.map(({ pid }) => pid),
      PostgreSQL: [await readPostmasterPid(postgres)],
      ...(way.name === 'Redis' && { Redis: [redis!.pid] }),
    };
    const costs = new Map<string, number[]>();
    const { rates, ratios } = await compareWithBareLoop(receiver, runs, async () => {
      const before = await readSeconds(pids);
      const rate = await measureRate();
      for (const [part, seconds] of await readSeconds(pids))
        costs.set(part, [...(costs.get(part) ?? []), ((seconds - before.get(part)!) / events) * 1e6]);
      return rate;
    });
    const figures: Figure[] = [
      { name: `${name}: per second`, value: median(rates), unit: '/s' },
      { name: `${name}: ratio to the bare loop`, value: median(ratios), unit: '×' },
      ...[...costs].map(([part, us]) => ({ name: `${name}: CPU of ${part}`, value: median(us), unit: 'µs' })),
    ];
    return { figures, ratio: median(ratios) };
  } finally {
    for (const node of nodes) await node.stop();
  }
}

async function readSeconds(pids: Readonly<Record<string, readonly number[]>>): Promise<Map<string, number>> {
  const seconds = new Map<string, number>();
  for (const [part, each] of Object.entries(pids)) {
    const all = await Promise.all(each.map((pid) => readTreeSeconds(pid)));
    seconds.set(
      part,
      all.reduce((sum, one) => sum + one, 0),
    );
  }
  return seconds;
}
