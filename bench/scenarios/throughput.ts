/**
 * End-to-end throughput: a separate process posts events, Posthorn delivers them to a minimal receiver and settles them.
 * Compared with a bare loop that signs and POSTs to the same receiver, before and after each run.
 */
import {
  compareWithBareLoop,
  median,
  type Postgres,
  type Posthorn,
  type Receiver,
  registerEndpoints,
  runLoad,
  startPosthorn,
  waitUntilSettled,
} from '../harness.ts';
import type { Bench, Figure } from '../scenario.ts';

export interface Variant {
  readonly name: string;
  readonly batch?: number;
  readonly fan?: number;
  readonly events: number;
  /** The arguments of `serve` for each node. Events are posted to the first. */
  readonly nodes: readonly string[][];
  readonly env?: Record<string, string>;
  readonly criteria?: Pick<Figure, 'id' | 'goal' | 'limit'>;
}

const TWO_PROCESSES = [['--processes', '2']];
const LIMIT = { atLeast: 0.3 };

const TWO_PROCESSES_OF_A_NODE: Variant = {
  name: 'one event per request, one process accepts and one delivers',
  events: 40_000,
  nodes: TWO_PROCESSES,
  criteria: { id: 'throughput_ratio', goal: { atLeast: 0.55 }, limit: LIMIT },
};
const HANDED_TO_ANOTHER_NODE: Variant = {
  name: 'one event per request, handed to another node over TLS',
  events: 30_000,
  nodes: [
    ['--role', 'api'],
    ['--role', 'worker'],
  ],
  env: { POSTHORN_PEER_LISTEN: '127.0.0.1:0' },
};
const VARIANTS: Variant[] = [
  TWO_PROCESSES_OF_A_NODE,
  {
    name: 'one event per request, a single process',
    events: 40_000,
    nodes: [[]],
    criteria: { id: 'throughput_ratio_single', limit: LIMIT },
  },
  {
    name: 'one event per request, delivered by another node',
    events: 30_000,
    nodes: [
      ['--role', 'api'],
      ['--role', 'worker'],
    ],
  },
  HANDED_TO_ANOTHER_NODE,
  { name: 'batches of 100', events: 60_000, batch: 100, nodes: TWO_PROCESSES },
  { name: 'fan-out 1 → 10 (deliveries)', events: 6_000, fan: 10, nodes: TWO_PROCESSES },
];

export const throughput: Bench = {
  name: 'throughput',
  async run({ postgres, receiver, runs, onProgress }) {
    const figures: Figure[] = [];
    const ratios = new Map<Variant, number>();
    for (const [index, variant] of VARIANTS.entries()) {
      onProgress(variant.name);
      const nodes: Posthorn[] = [];
      try {
        for (const args of variant.nodes) nodes.push(await startPosthorn(postgres, variant.env, args));
        const rounds = variant.criteria ? runs : Math.min(runs, 3);
        const measured = await measure(variant, `t${index}`, nodes[0]!, postgres, receiver, rounds);
        figures.push(...measured);
        ratios.set(variant, measured.at(-1)!.value);
      } finally {
        for (const node of nodes) await node.stop();
      }
    }
    return [
      ...figures,
      {
        name: 'handed to another node over TLS, over two processes of one node',
        value: ratios.get(HANDED_TO_ANOTHER_NODE)! / ratios.get(TWO_PROCESSES_OF_A_NODE)!,
        unit: '×',
        goal: { atLeast: 0.85 },
      },
    ];
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
  const measureRate = await prepareLoad(variant, tenant, posthorn, postgres, receiver);
  const { rates, ratios } = await compareWithBareLoop(receiver, runs, measureRate);
  return [
    { name: `${variant.name}: per second`, value: median(rates), unit: '/s' },
    {
      name: `${variant.name}: ratio to the bare loop`,
      value: median(ratios),
      unit: '×',
      ...variant.criteria,
    },
  ];
}

/** Creates the endpoints and warms up. Returns a function that runs the load once and returns deliveries per second. */
export async function prepareLoad(
  { batch = 1, fan = 1, events }: Pick<Variant, 'batch' | 'fan' | 'events'>,
  tenant: string,
  posthorn: Posthorn,
  postgres: Postgres,
  receiver: Receiver,
): Promise<() => Promise<number>> {
  const types = await registerEndpoints(posthorn, receiver, { count: 50, fan, tenant });
  const measureRate = async (): Promise<number> => {
    const before = await receiver.count();
    const load = await runLoad(posthorn, {
      events,
      types,
      tenant,
      batch,
      connections: batch > 1 ? 8 : 128,
    });
    if (load.rejected > 0) throw new Error(`${load.rejected} events were rejected`);
    await waitUntilSettled(postgres, 60);
    const seconds = (performance.timeOrigin + performance.now() - load.startedAt) / 1000;
    return ((await receiver.count()) - before) / seconds;
  };
  // Warm-up: V8 needs about ten thousand events in each process to optimize the hot path.
  await measureRate();
  return measureRate;
}
