/** A million deliveries wait for one dead endpoint: memory, startup time, and the speed of the other endpoints. */
import {
  compareWithBareLoop,
  computeRate,
  median,
  type Postgres,
  percentile,
  registerEndpoints,
  runLoad,
  startPosthorn,
  waitUntilSettledExcept,
} from '../harness.ts';
import { readRssMb } from '../process-figures.ts';
import type { Bench } from '../scenario.ts';

export const backlog: Bench = {
  name: 'backlog',
  async run({ postgres, receiver, runs, quick, onProgress }) {
    const waiting = quick ? 100_000 : 1_000_000;
    onProgress('empty');
    const before = await measure();
    onProgress(`${waiting.toLocaleString('en')} waiting`);
    const deadEndpoint = await createBacklog(postgres, waiting);
    const after = await measure(deadEndpoint);
    await postgres.query('truncate posthorn.queue');
    return [
      { name: 'memory, empty', value: before.rssMb, unit: 'MB' },
      {
        name: `memory with ${waiting.toLocaleString('en')} waiting`,
        value: after.rssMb,
        unit: 'MB',
        id: 'backlog_rss_mb',
        goal: { atMost: 350 },
        limit: { atMost: 350 },
      },
      { name: 'startup time, empty', value: before.startMs, unit: 'ms' },
      { name: 'startup time, with the backlog', value: after.startMs, unit: 'ms' },
      { name: 'throughput, empty', value: before.rate, unit: '/s' },
      { name: 'throughput of the other endpoints, with the backlog', value: after.rate, unit: '/s' },
      {
        name: 'throughput with the backlog / empty (as ratios to the bare loop)',
        value: after.ratio / before.ratio,
        unit: '×',
        id: 'backlog_throughput',
        goal: { atLeast: 0.9 },
      },
      { name: 'p99 of accepting an event, empty', value: before.p99, unit: 'ms' },
      { name: 'p99 of accepting an event, with the backlog', value: after.p99, unit: 'ms' },
    ];

    async function measure(deadEndpointId: string | null = null) {
      const startedAt = performance.now();
      const posthorn = await startPosthorn(postgres);
      const startMs = performance.now() - startedAt;
      try {
        const tenant = deadEndpointId === null ? 'empty' : 'others';
        const types = await registerEndpoints(posthorn, receiver, { count: 50, tenant });
        await runLoad(posthorn, { events: 10_000, types, tenant });
        await waitUntilSettledExcept(postgres, deadEndpointId, 60);
        const p99s: number[] = [];
        const { rates, ratios } = await compareWithBareLoop(receiver, runs, async () => {
          const load = await runLoad(posthorn, { events: 20_000, types, tenant, connections: 128 });
          await waitUntilSettledExcept(postgres, deadEndpointId, 60);
          p99s.push(percentile(load.latencies, 0.99));
          return computeRate(load);
        });
        return {
          rate: median(rates),
          ratio: median(ratios),
          startMs,
          p99: median(p99s),
          rssMb: await readRssMb(posthorn.pid),
        };
      } finally {
        await posthorn.stop();
      }
    }
  },
};

/** Creates an endpoint on a closed port with an open circuit, and inserts its deliveries with SQL. Returns its id. */
async function createBacklog(database: Postgres, count: number): Promise<string> {
  const posthorn = await startPosthorn(database);
  try {
    await posthorn.api('POST', '/v1/endpoints', {
      tenant: 'dead',
      url: 'http://127.0.0.1:9/',
      events: ['dead.*'],
      breaker: { consecutive: 1, cooldown_seconds: 3600 },
    });
    await posthorn.api('POST', '/v1/events', {
      tenant: 'dead',
      type: 'dead.one',
      data: { filler: 'x'.repeat(950) },
    });
    const [row] = await database.query<{ id: string }>(
      "select id from posthorn.endpoints where tenant = 'dead'",
    );
    await database.query(
      `with template as (select * from posthorn.events where tenant = 'dead' limit 1),
            made as (
              insert into posthorn.events (id, tenant, type, data, deliveries)
              select (substr(t.id::text, 1, 14) || '7' || lpad(to_hex(n % 4096), 3, '0') || '-8' || lpad(to_hex(n / 4096), 3, '0') || '-'
                      || lpad(to_hex(n), 8, '0') || '0000')::uuid, t.tenant, t.type, t.data, 1
                from template t, generate_series(1, $1) as n returning id)
       insert into posthorn.queue (id, endpoint_id, tenant, event_type) select id, $2, 'dead', 'dead.one' from made`,
      [count, row!.id],
    );
    await database.query('analyze posthorn.queue');
    return row!.id;
  } finally {
    await posthorn.stop();
  }
}
