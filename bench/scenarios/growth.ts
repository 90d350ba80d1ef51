/** Throughput of an empty database against one with millions of rows of history. */
import {
  median,
  type Postgres,
  registerEndpoints,
  runLoad,
  startPosthorn,
  untilSettled,
} from '../harness.ts';
import type { Bench } from '../scenario.ts';

export const growth: Bench = {
  name: 'growth',
  async run({ postgres, receiver, runs, quick, progress }) {
    const rows = quick ? 200_000 : 3_000_000;
    progress('empty');
    const before = await measure('young');
    progress(`filling ${rows.toLocaleString('en')} deliveries`);
    await fill(postgres, rows);
    progress('grown');
    const after = await measure('old');
    return [
      { name: 'empty', value: before, unit: '/s' },
      { name: `with ${rows.toLocaleString('en')} deliveries, events and attempts`, value: after, unit: '/s' },
      {
        name: 'ratio',
        value: after / before,
        unit: '×',
        id: 'growth_ratio',
        goal: { atLeast: 0.9 },
        floor: { atLeast: 0.6 },
      },
    ];

    async function measure(tenant: string): Promise<number> {
      const posthorn = await startPosthorn(postgres);
      try {
        const types = await registerEndpoints(posthorn, receiver, { count: 50, tenant });
        const once = async (): Promise<number> => {
          const started = performance.now();
          const load = await runLoad(posthorn, { events: 20_000, types, tenant, connections: 128 });
          await untilSettled(postgres, 60);
          return load.accepted / ((performance.now() - started) / 1000);
        };
        await once();
        const rates: number[] = [];
        for (let run = 0; run < Math.min(3, runs); run += 1) rates.push(await once());
        return median(rates);
      } finally {
        await posthorn.stop();
      }
    }
  },
};

/** Copies of what the first measurement left, in chunks, spread over the endpoints. */
async function fill(postgres: Postgres, rows: number): Promise<void> {
  const chunk = 100_000;
  const id = `(substr(gen_random_uuid()::text, 1, 0) || substr(d.id::text, 1, 15) || substr(gen_random_uuid()::text, 16, 21))::uuid`;
  for (let done = 0; done < rows; done += chunk) {
    await postgres.query(
      `with made as materialized (
         select ${id} as id, d.endpoint_id, d.tenant, d.event_type, d.id as source
           from (select * from posthorn.deliveries order by id limit 20000) d, generate_series(1, ${chunk / 20_000})),
       history as (
         insert into posthorn.deliveries (id, endpoint_id, status, attempts, replays, last_status_code, finished_at, tenant, event_type)
         select id, endpoint_id, 'delivered', 1, 0, 200, now(), tenant, event_type from made on conflict do nothing),
       facts as (
         insert into posthorn.events (id, tenant, type, data, deliveries)
         select id, tenant, event_type, convert_to(repeat('x', 1000), 'UTF8'), 1 from made on conflict do nothing)
       insert into posthorn.attempts (delivery_id, id, number, started_at, duration_ms, status_code, outcome, url, request_headers,
                                      response_truncated, trigger, worker)
       select id, gen_random_uuid(), 1, now(), 3, 200, 'delivered', 'http://127.0.0.1/', '{}', false, 'auto', 'bench' from made`,
    );
  }
  await postgres.query('analyze posthorn.deliveries, posthorn.events, posthorn.attempts');
}
