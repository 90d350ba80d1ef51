/** A tenant keeps an idempotency key locked in a transaction of its own, and publishes with that key all the time. */
import pg from 'pg';
import { attackWith, noisyBench } from '../noisy.ts';

const REQUESTS = 20;

export const noisyLockedRow = noisyBench({
  name: 'locked-row',
  beside: 'beside requests that wait for a locked row',
  async prepare() {},
  async run(target, signal) {
    const tenant = `locked-${target.run}`;
    await attackWith(target, '/v1/events', JSON.stringify({ tenant, type: 'a.b', data: 0 }));
    const holder = new pg.Client({ connectionString: target.postgres.url });
    await holder.connect();
    try {
      await holder.query('begin');
      await holder.query(
        `insert into posthorn.idempotency_keys (tenant, key, event_id, fingerprint, expires_at)
         values ($1, 'locked', gen_random_uuid(), '', now() + interval '1 hour')`,
        [tenant],
      );
      const body = JSON.stringify({ tenant, type: 'a.b', data: 1, idempotency_key: 'locked' });
      const repeat = async (): Promise<void> => {
        while (!signal.aborted) await attackWith(target, '/v1/events', body);
      };
      const requests = Promise.all(Array.from({ length: REQUESTS }, repeat));
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
      await holder.query('rollback');
      await requests;
    } finally {
      await holder.end();
    }
  },
});
