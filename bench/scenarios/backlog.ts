/** A million deliveries wait for an endpoint that never answers: memory, the others' speed, and the time to start. */
import { readFile } from 'node:fs/promises';
import {
  besideBareLoop,
  median,
  type Postgres,
  percentile,
  registerEndpoints,
  runLoad,
  startPosthorn,
  untilSettledBut,
} from '../harness.ts';
import type { Bench } from '../scenario.ts';

export const backlog: Bench = {
  name: 'backlog',
  async run({ postgres, receiver, runs, quick, progress }) {
    const waiting = quick ? 100_000 : 1_000_000;
    progress('empty');
    const before = await measure();
    progress(`${waiting.toLocaleString('en')} waiting`);
    const dead = await makeBacklog(postgres, waiting);
    const after = await measure(dead);
    await postgres.query('truncate posthorn.queue');
    return [
      { name: 'memory of the process, empty', value: before.rssMb, unit: 'MB' },
      {
        name: `memory with ${waiting.toLocaleString('en')} waiting`,
        value: after.rssMb,
        unit: 'MB',
        id: 'backlog_rss_mb',
        goal: { atMost: 350 },
        floor: { atMost: 350 },
      },
      { name: 'time to get ready, empty', value: before.startMs, unit: 'ms' },
      { name: 'time to get ready, with the backlog', value: after.startMs, unit: 'ms' },
      { name: 'throughput, empty', value: before.rate, unit: '/s' },
      { name: 'throughput of the others, with the backlog', value: after.rate, unit: '/s' },
      {
        name: 'the others, throughput against empty (ratios to the bare loop)',
        value: after.ratio / before.ratio,
        unit: '×',
        id: 'backlog_throughput',
        goal: { atLeast: 0.9 },
      },
      { name: 'the others, p99 of accept, empty', value: before.p99, unit: 'ms' },
      { name: 'the others, p99 of accept, with the backlog', value: after.p99, unit: 'ms' },
    ];

    async function measure(except?: string) {
      const started = performance.now();
      const posthorn = await startPosthorn(postgres);
      const startMs = performance.now() - started;
      try {
        const tenant = except === undefined ? 'empty' : 'others';
        const types = await registerEndpoints(posthorn, receiver, { count: 50, tenant });
        await runLoad(posthorn, { events: 10_000, types, tenant });
        await untilSettledBut(postgres, except ?? null, 60);
        const p99s: number[] = [];
        const { rates, ratios } = await besideBareLoop(receiver, runs, async () => {
          const load = await runLoad(posthorn, { events: 20_000, types, tenant, connections: 128 });
          await untilSettledBut(postgres, except ?? null, 60);
          p99s.push(percentile(load.latencies, 0.99));
          return load.accepted / ((performance.timeOrigin + performance.now() - load.beganAt) / 1000);
        });
        return {
          rate: median(rates),
          ratio: median(ratios),
          startMs,
          p99: median(p99s),
          rssMb: await rssMb(posthorn.pids[0]!),
        };
      } finally {
        await posthorn.stop();
      }
    }

    /** As if it had been accepted: an endpoint whose port nobody listens on, its circuit open, and its deliveries. */
    async function makeBacklog(database: Postgres, count: number): Promise<string> {
      const posthorn = await startPosthorn(database);
      try {
        const endpoint = await posthorn.api<{ id: string }>('POST', '/v1/endpoints', {
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
        void endpoint;
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
  },
};

async function rssMb(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)![1]) / 1024;
}
