/**
 * Events posted one per request by a separate process, delivered to a separate minimal receiver, and settled; as a
 * ratio to a bare sign-and-POST loop to the same receiver, measured before and after each run.
 */
import {
  besideBareLoop,
  median,
  type Postgres,
  type Posthorn,
  type Receiver,
  registerEndpoints,
  runLoad,
  startPosthorn,
  untilSettled,
} from '../harness.ts';
import type { Bench, Figure } from '../scenario.ts';

interface Variant {
  readonly name: string;
  readonly batch?: number;
  readonly fan?: number;
  readonly events: number;
  /** Arguments of `serve`, one list for each node. Requests go to the first. */
  readonly nodes: readonly string[][];
  readonly judged?: Pick<Figure, 'id' | 'goal' | 'floor'>;
}

const TWO_PROCESSES = [['--processes', '2']];
const FLOOR = { atLeast: 0.3 };

const VARIANTS: Variant[] = [
  {
    name: 'one event per request, one process accepts and one delivers',
    events: 40_000,
    nodes: TWO_PROCESSES,
    judged: { id: 'throughput_ratio', goal: { atLeast: 0.45 }, floor: FLOOR },
  },
  {
    name: 'one event per request, a single process',
    events: 40_000,
    nodes: [[]],
    judged: { id: 'throughput_ratio_single', floor: FLOOR },
  },
  {
    name: 'one event per request, delivered by another node',
    events: 30_000,
    nodes: [
      ['--role', 'api'],
      ['--role', 'worker'],
    ],
  },
  { name: 'batches of 100', events: 60_000, batch: 100, nodes: TWO_PROCESSES },
  { name: 'fan-out 1 → 10 (deliveries)', events: 6_000, fan: 10, nodes: TWO_PROCESSES },
];

export const throughput: Bench = {
  name: 'throughput',
  async run({ postgres, receiver, runs, progress }) {
    const figures: Figure[] = [];
    for (const [index, variant] of VARIANTS.entries()) {
      progress(variant.name);
      const nodes: Posthorn[] = [];
      try {
        for (const args of variant.nodes) nodes.push(await startPosthorn(postgres, {}, args));
        figures.push(
          ...(await measure(
            variant,
            `t${index}`,
            nodes[0]!,
            postgres,
            receiver,
            variant.judged ? runs : Math.min(runs, 3),
          )),
        );
      } finally {
        for (const node of nodes) await node.stop();
      }
    }
    return figures;
  },
};

async function measure(
  variant: Variant,
  tenant: string,
  posthorn: Posthorn,
  postgres: Postgres,
  receiver: Receiver,
  runs: number,
): Promise<Figure[]> {
  const { batch = 1, fan = 1, events } = variant;
  const types = await registerEndpoints(posthorn, receiver, { count: 50, fan, tenant });
  const once = async (count: number): Promise<number> => {
    const before = await receiver.count();
    const load = await runLoad(posthorn, {
      events: count,
      types,
      tenant,
      batch,
      connections: batch > 1 ? 8 : 128,
    });
    if (load.refused > 0) throw new Error(`${load.refused} events were refused`);
    await untilSettled(postgres, 60);
    const seconds = (performance.timeOrigin + performance.now() - load.beganAt) / 1000;
    return ((await receiver.count()) - before) / seconds;
  };
  // The compiler needs some ten thousand rounds to be done with the hot path, in each process.
  await once(events);
  const { rates, ratios } = await besideBareLoop(receiver, runs, () => once(events));
  return [
    { name: `${variant.name}: per second`, value: median(rates), unit: '/s' },
    {
      name: `${variant.name}: ratio to the bare loop`,
      value: median(ratios),
      unit: '×',
      ...variant.judged,
    },
  ];
}
