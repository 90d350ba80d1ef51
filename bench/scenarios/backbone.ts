/**
 * PostgreSQL alone against Kafka as the accept log (`POSTHORN_BACKBONE=kafka`, one broker), on the same work: throughput until
 * everything is delivered, and processor time per event of Posthorn, the broker and PostgreSQL. Then the latency of healthy
 * endpoints on Kafka, alone and beside the backlog of an endpoint that does not answer.
 */
import { missingKafka, TestBroker } from '../../test/support/kafka/broker.ts';
import {
  createDatabase,
  median,
  type Postgres,
  type Posthorn,
  percentile,
  type Receiver,
  registerEndpoints,
  runLoad,
  startPosthorn,
} from '../harness.ts';
import { readPostmasterPid, readTreeSeconds } from '../process-figures.ts';
import type { Bench, BenchContext, Figure } from '../scenario.ts';

const EVENTS = 40_000;
const BATCHES_OF = [1, 100] as const;
const BACKLOG = 1_000_000;
const HEALTHY = 20;
const RATE = 300;
const MAX_WAIT_MS = 300_000;

type Backbone = 'PostgreSQL' | 'Kafka';

export const backbone: Bench = {
  name: 'backbone',
  async run(context) {
    const missing = missingKafka();
    if (missing !== null) {
      console.error(`backbone: skipped, because ${missing}`);
      return [];
    }
    const broker = await TestBroker.start();
    try {
      const figures: Figure[] = [];
      for (const batch of BATCHES_OF) {
        const rates = new Map<Backbone, number>();
        for (const name of ['PostgreSQL', 'Kafka'] as const) {
          const measured = await measureThroughput(context, broker, name, batch);
          rates.set(name, measured.rate);
          figures.push(...measured.figures);
        }
        const value = rates.get('Kafka')! / rates.get('PostgreSQL')!;
        figures.push({ name: `${titleOf(batch)}: Kafka over PostgreSQL`, value, unit: '×' });
      }
      return [...figures, ...(await measureBacklog(context, broker))];
    } finally {
      await broker.remove();
    }
  },
};

const titleOf = (batch: number): string => (batch === 1 ? 'one by one' : `batches of ${batch}`);

let databases = 0;

/** Each run has its own database and topic, so that the rows of one do not slow down the next. */
async function start(
  postgres: Postgres,
  broker: TestBroker,
  name: Backbone,
): Promise<{ database: Postgres; posthorn: Posthorn; stop: () => Promise<void> }> {
  databases += 1;
  const database = await createDatabase(postgres, `backbone_${databases}`);
  const env = {
    POSTHORN_BACKBONE: 'kafka',
    POSTHORN_KAFKA_BROKERS: broker.address,
    POSTHORN_KAFKA_ACCEPT_TOPIC: `accept-${databases}`,
    POSTHORN_KAFKA_ACCEPT_REPLICAS: '1',
    POSTHORN_KAFKA_ACCEPT_MIN_INSYNC: '1',
  };
  const posthorn = await startPosthorn(database, name === 'Kafka' ? env : {}, ['--processes', '2']);
  const stop = async (): Promise<void> => {
    await posthorn.stop();
    await database.stop();
  };
  return { database, posthorn, stop };
}

async function measureThroughput(
  { postgres, receiver, runs, quick, onProgress }: BenchContext,
  broker: TestBroker,
  name: Backbone,
  batch: number,
): Promise<{ figures: Figure[]; rate: number }> {
  const title = `${titleOf(batch)}, ${name}`;
  onProgress(title);
  const { database, posthorn, stop } = await start(postgres, broker, name);
  try {
    const events = EVENTS / (quick ? 10 : 1);
    const types = await registerEndpoints(posthorn, receiver, { count: 10, tenant: 'acme' });
    const measureOnce = () => publishAndDeliver(posthorn, database, receiver, { events, batch, types });
    await measureOnce();
    const pids = {
      Posthorn: posthorn.pid,
      PostgreSQL: await readPostmasterPid(postgres),
      ...(name === 'Kafka' && { 'the broker': broker.pid }),
    };
    const rates: number[] = [];
    const costs = new Map<string, number[]>();
    for (let run = 0; run < (quick ? 1 : runs); run += 1) {
      const before = await readSeconds(pids);
      rates.push(await measureOnce());
      for (const [part, seconds] of await readSeconds(pids))
        costs.set(part, [...(costs.get(part) ?? []), ((seconds - before.get(part)!) / events) * 1e6]);
    }
    const cpu = [...costs].map(([part, us]) => ({
      name: `${title}: CPU of ${part} per event`,
      value: median(us),
      unit: 'µs',
    }));
    const rate = median(rates);
    return { figures: [{ name: `${title}: per second`, value: rate, unit: '/s' }, ...cpu], rate };
  } finally {
    await stop();
  }
}

interface Work {
  readonly events: number;
  readonly batch: number;
  readonly types: string[];
}

/** Returns events per second, from the first request until the last event is delivered and recorded. */
async function publishAndDeliver(
  posthorn: Posthorn,
  database: Postgres,
  receiver: Receiver,
  { events, batch, types }: Work,
): Promise<number> {
  const before = await receiver.count();
  const { accepted, rejected, startedAt } = await runLoad(posthorn, {
    tenant: 'acme',
    events,
    batch,
    types,
    seconds: MAX_WAIT_MS / 1000,
  });
  if (rejected > 0) throw new Error(`${rejected} events were rejected`);
  await waitUntil('all events are delivered', async () => (await receiver.count()) - before >= accepted);
  await waitUntil('all results are recorded', async () => (await countQueued(database)) === 0);
  return accepted / ((performance.timeOrigin + performance.now() - startedAt) / 1000);
}

/** The p99 of healthy endpoints on Kafka, from the request of the producer to the arrival at the receiver. */
async function measureBacklog(
  { postgres, receiver, quick, onProgress }: BenchContext,
  broker: TestBroker,
): Promise<Figure[]> {
  const backlog = BACKLOG / (quick ? 100 : 1);
  const seconds = quick ? 4 : 15;
  const { database, posthorn, stop } = await start(postgres, broker, 'Kafka');
  try {
    const types = await registerEndpoints(posthorn, receiver, { count: HEALTHY, tenant: 'healthy' });
    const [slowType] = await registerEndpoints(posthorn, receiver, {
      count: 1,
      tenant: 'slow',
      path: () => '/hang/0',
      settings: { timeout_ms: 30_000, breaker: null },
    });
    const measure = async (title: string): Promise<number> => {
      onProgress(title);
      // A node that has just started reads the topic only after some seconds: these first events must not count.
      const before = await receiver.count();
      const { accepted } = await runLoad(posthorn, { rate: RATE, seconds: 2, types, tenant: 'healthy' });
      await waitUntil(
        'the first events are delivered',
        async () => (await receiver.count()) - before >= accepted,
      );
      receiver.recordLatencies(true);
      await runLoad(posthorn, { rate: RATE, seconds, types, tenant: 'healthy' });
      const p99 = percentile(await receiver.takeLatencies(), 0.99);
      receiver.recordLatencies(false);
      return p99;
    };
    const alone = await measure('p99 alone');
    onProgress('backlog');
    await runLoad(posthorn, {
      events: backlog,
      batch: 100,
      bytes: 200,
      types: [slowType!],
      tenant: 'slow',
      seconds: MAX_WAIT_MS / 1000,
    });
    await waitUntil('the backlog is stored', async () => (await countQueued(database)) >= backlog);
    const beside = await measure('p99 beside the backlog');
    return [
      { name: 'Kafka: p99 of healthy endpoints, alone', value: alone, unit: 'ms' },
      {
        name: `Kafka: p99 beside a backlog of ${backlog.toLocaleString('en')} of one endpoint`,
        value: beside,
        unit: 'ms',
      },
      {
        name: 'ratio',
        value: beside / alone,
        unit: '×',
        id: 'backbone_backlog_ratio',
        goal: { atMost: 1.5 },
        limit: { atMost: 4 },
      },
    ];
  } finally {
    await stop();
  }
}

async function countQueued(database: Postgres): Promise<number> {
  const [row] = await database.query<{ n: number }>('select count(*)::int as n from posthorn.queue');
  return row!.n;
}

async function waitUntil(what: string, isTrue: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + MAX_WAIT_MS;
  while (!(await isTrue())) {
    if (Date.now() > deadline) throw new Error(`not within ${MAX_WAIT_MS / 1000} seconds: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function readSeconds(pids: Readonly<Record<string, number>>): Promise<Map<string, number>> {
  const seconds = new Map<string, number>();
  for (const [part, pid] of Object.entries(pids)) seconds.set(part, await readTreeSeconds(pid));
  return seconds;
}
