/** What a delivery costs while it waits: memory of the worker and disk. */
import { type Postgres, runLoad } from '../harness.ts';
import { readRssMb } from '../process-figures.ts';
import { startNode } from './measure.ts';

export interface Waiting {
  readonly count: number;
  /** Disk per waiting delivery, without its event. */
  readonly diskBytes: number;
  /** Megabytes of the worker before and after. */
  readonly before: number;
  readonly after: number;
}

/** Publishes events for a paused endpoint. */
export async function measureWaiting(postgres: Postgres, count: number): Promise<Waiting> {
  const node = await startNode(postgres);
  try {
    const { posthorn, pids } = node;
    const { id } = await posthorn.api<{ id: string }>('POST', '/v1/endpoints', {
      tenant: 'waiting',
      url: 'http://127.0.0.1:9/',
      events: ['order.created'],
    });
    await posthorn.api('POST', `/v1/endpoints/${id}/pause`);
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    const before = await readRssMb(pids.worker);
    const { accepted } = await runLoad(posthorn, {
      events: count,
      batch: 100,
      connections: 4,
      tenant: 'waiting',
      bytes: 300,
    });
    await postgres.query('vacuum analyze posthorn.queue');
    const [size] = await postgres.query<{ bytes: string }>(
      "select pg_total_relation_size('posthorn.queue')::text as bytes",
    );
    return {
      count: accepted,
      diskBytes: Number(size!.bytes) / accepted,
      before,
      after: await readRssMb(pids.worker),
    };
  } finally {
    await node.posthorn.stop();
  }
}
