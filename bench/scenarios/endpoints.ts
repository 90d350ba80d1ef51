/**
 * What an endpoint costs: memory, startup time, accepting an event and idle CPU with 10,000, 100,000 and one million
 * endpoints (`--quick`: 10,000 only), a thousand for each tenant. `BENCH_ENDPOINTS=10000,100000` chooses other numbers.
 */
import { newId } from '../../src/domain/ids.ts';
import { createSecretBox } from '../../src/postgres/secret-box.ts';
import {
  type Postgres,
  percentile,
  registerEndpoints,
  runLoad,
  startPosthorn,
  waitUntilSettled,
} from '../harness.ts';
import { readPostmasterPid, readRssMb, readTreeSeconds } from '../process-figures.ts';
import type { Bench, Figure } from '../scenario.ts';

const ENDPOINTS_PER_TENANT = 1_000;
const ROWS_PER_INSERT = 5_000;
/** Long enough for everything that runs once a minute. */
const IDLE_SECONDS = 60;

export const endpoints: Bench = {
  name: 'endpoints',
  async run({ postgres, receiver, quick, onProgress }) {
    const chosen = process.env.BENCH_ENDPOINTS ?? (quick ? '10000' : '10000,100000,1000000');
    const figures: Figure[] = [];
    const baseline = await measure(0);
    let existing = 0;
    for (const count of chosen.split(',').map(Number)) {
      onProgress(`creating ${count.toLocaleString('en')}`);
      await createEndpoints(postgres, existing, count);
      existing = count;
      onProgress(`measuring ${count.toLocaleString('en')}`);
      const measured = await measure(count);
      const label = count.toLocaleString('en');
      figures.push(
        {
          name: `${label}: memory per endpoint`,
          value: ((measured.rss - baseline.rss) * 1024 * 1024) / count,
          unit: 'B',
        },
        { name: `${label}: memory`, value: measured.rss, unit: 'MB', id: `endpoints_${count}_rss_mb` },
        { name: `${label}: startup`, value: measured.startMs, unit: 'ms' },
        { name: `${label}: accept p50 at 200/s`, value: measured.acceptMs, unit: 'ms' },
        {
          name: `${label}: idle CPU of Posthorn`,
          value: measured.idle.posthorn * 100,
          unit: '% of a core',
          id: `endpoints_${count}_idle`,
          ...(count <= 100_000 ? { goal: { atMost: 3 } } : {}),
        },
        {
          name: `${label}: idle CPU of PostgreSQL`,
          value: measured.idle.postgres * 100,
          unit: '% of a core',
        },
      );
    }
    return figures;

    async function measure(count: number) {
      const startedAt = performance.now();
      const posthorn = await startPosthorn(
        postgres,
        { POSTHORN_MAX_ENDPOINTS_PER_TENANT: '1000000' },
        [],
        ['--max-old-space-size=12000'],
        300,
      );
      const startMs = performance.now() - startedAt;
      try {
        const tenant = `busy-${count}`;
        const types = await registerEndpoints(posthorn, receiver, { count: 10, tenant });
        const load = await runLoad(posthorn, { rate: 200, seconds: 5, types, tenant });
        await waitUntilSettled(postgres, 60);
        // The lanes of all endpoints are opened after the process is ready.
        await new Promise((resolve) => setTimeout(resolve, 5_000 + count / 25));
        const idle = await measureIdle(postgres, posthorn.pid);
        return {
          startMs,
          acceptMs: percentile(load.latencies, 0.5),
          rss: await readRssMb(posthorn.pid),
          idle,
        };
      } finally {
        await posthorn.stop();
      }
    }
  },
};

/** Inserts endpoints with SQL: one million requests would take an hour. */
export async function createEndpoints(postgres: Postgres, existing: number, count: number): Promise<void> {
  const box = createSecretBox(Buffer.from(postgres.encryptionKey, 'base64'));
  for (let first = existing; first < count; first += ROWS_PER_INSERT) {
    const rows = Array.from({ length: Math.min(ROWS_PER_INSERT, count - first) }, (_, index) => {
      const id = newId(Date.now());
      const number = first + index;
      return {
        id,
        secret_id: newId(Date.now()),
        tenant: `many-${Math.floor(number / ENDPOINTS_PER_TENANT)}`,
        url: `https://receiver-${number}.example.com/hooks/${number}`,
        config: { events: ['order.*', `invoice.paid.${number % 50}`] },
        key_id: box.keyId,
        ciphertext: box.seal(`whsec_${'a'.repeat(32)}`, id).ciphertext.toString('hex'),
      };
    });
    await postgres.query(
      `with step as (update posthorn.subscription_version set version = version + 1 returning version),
            rows as (select * from json_to_recordset($1) as r(id uuid, secret_id uuid, tenant text, url text, config jsonb,
                                                              key_id text, ciphertext text)),
            tenants as (insert into posthorn.tenants (id) select distinct tenant from rows on conflict do nothing),
            made as (insert into posthorn.endpoints (id, tenant, url, config, version)
                     select r.id, r.tenant, r.url, r.config, step.version from rows r, step returning id)
       insert into posthorn.endpoint_secrets (id, endpoint_id, key_id, ciphertext)
       select r.secret_id, made.id, r.key_id, decode(r.ciphertext, 'hex') from rows r join made on made.id = r.id`,
      [JSON.stringify(rows)],
    );
  }
  await postgres.query('analyze posthorn.endpoints, posthorn.endpoint_secrets');
}

export async function measureIdle(
  postgres: Postgres,
  pid: number,
): Promise<{ posthorn: number; postgres: number }> {
  const postmaster = await readPostmasterPid(postgres);
  const before = [await readTreeSeconds(pid), await readTreeSeconds(postmaster)] as const;
  await new Promise((resolve) => setTimeout(resolve, IDLE_SECONDS * 1_000));
  const after = [await readTreeSeconds(pid), await readTreeSeconds(postmaster)] as const;
  return { posthorn: (after[0] - before[0]) / IDLE_SECONDS, postgres: (after[1] - before[1]) / IDLE_SECONDS };
}
