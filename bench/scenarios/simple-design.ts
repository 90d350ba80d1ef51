/**
 * For comparison, the usual job queue on PostgreSQL: one row and one commit per event, one `SKIP LOCKED` claim and one commit
 * per delivery. More workers than these do not make it faster.
 */
import { createHmac, randomBytes } from 'node:crypto';
import pg from 'pg';
import { Pool } from 'undici';
import { runBareLoop } from '../harness.ts';
import type { Bench } from '../scenario.ts';

const WORKERS = 16;

export const simpleDesign: Bench = {
  name: 'simple design',
  async run({ postgres, receiver, quick, onProgress }) {
    onProgress('one SKIP LOCKED claim and one commit per delivery');
    await postgres.query(`
      drop table if exists public.simple_queue;
      create table public.simple_queue (id bigserial primary key, data text not null, status text not null default 'pending',
                                        due_at timestamptz not null default now(), attempts int not null default 0);
      create index on public.simple_queue (due_at) where status = 'pending'`);
    const database = new pg.Pool({ connectionString: postgres.url, max: WORKERS * 2 });
    const http = new Pool(`http://127.0.0.1:${receiver.port}`, { connections: 64 });
    const key = randomBytes(32);
    const data = JSON.stringify({ filler: 'x'.repeat(980) });
    const deadline = performance.now() + (quick ? 3000 : 10_000);
    let accepted = 0;
    let delivered = 0;
    const produce = async (): Promise<void> => {
      while (performance.now() < deadline) {
        if (accepted - delivered > 500) {
          await new Promise((resolve) => setTimeout(resolve, 5));
          continue;
        }
        await database.query('insert into public.simple_queue (data) values ($1)', [data]);
        accepted += 1;
      }
    };
    const work = async (): Promise<void> => {
      while (performance.now() < deadline) {
        const { rows } = await database.query<{ id: string; data: string }>(
          `update public.simple_queue set status = 'sending', attempts = attempts + 1
            where id = (select id from public.simple_queue where status = 'pending' and due_at <= now() order by due_at limit 1 for update skip locked)
           returning id, data`,
        );
        const row = rows[0];
        if (row === undefined) {
          await new Promise((resolve) => setTimeout(resolve, 5));
          continue;
        }
        const signature = createHmac('sha256', key).update(row.data).digest('base64');
        const { body } = await http.request({
          method: 'POST',
          path: '/ok/simple',
          headers: { 'webhook-signature': `v1,${signature}` },
          body: row.data,
        });
        await body.dump();
        await database.query("update public.simple_queue set status = 'delivered' where id = $1", [row.id]);
        delivered += 1;
      }
    };
    const startedAt = performance.now();
    await Promise.all([
      ...Array.from({ length: WORKERS }, produce),
      ...Array.from({ length: WORKERS }, work),
    ]);
    const rate = delivered / ((performance.now() - startedAt) / 1000);
    await database.end();
    await http.close();
    await postgres.query('drop table public.simple_queue');
    const bare = await runBareLoop(receiver, 2);
    return [
      { name: 'one claim and one commit per delivery: per second', value: rate, unit: '/s' },
      {
        name: 'one claim and one commit per delivery: ratio to the bare loop',
        value: rate / bare,
        unit: '×',
      },
    ];
  },
};
