/**
 * S2: how long it takes to find out what happened to an order, from its number only. Payloads have no index, so the oldest
 * order takes longest: the search examines every newer event.
 */
import pg from 'pg';
import { fillEndpoints, fillHistory } from '../fill-history.ts';
import { type Posthorn, startPosthorn } from '../harness.ts';
import { prepareForHistory } from '../history-database.ts';
import type { Bench, Figure } from '../scenario.ts';

const DAY_MS = 86_400_000;
const SPAN_MS = 28 * DAY_MS;
const DATA_BYTES = 1000;
const GOAL_SECONDS = 60;

/** The number of the order is that of its event: `ord-00000000` is the oldest. */
const orderOf = (event: number): string => `ord-${String(event).padStart(8, '0')}`;
const DATA = `'{"order_id":"ord-' || lpad(n::text, 8, '0') || '","note":"' || repeat('x', ${DATA_BYTES - 42}) || '"}'`;

export const payloadSearch: Bench = {
  name: 'payload-search',
  async run({ postgres, quick, onProgress }) {
    const events = quick ? 50_000 : 1_000_000;
    const pool = new pg.Pool({ connectionString: postgres.url, max: 1 });
    await prepareForHistory(pool, SPAN_MS);
    await pool.end();
    await fillEndpoints(postgres.query, 200);
    await fillHistory(
      postgres.query,
      {
        deliveries: events * 1.2,
        spanMs: SPAN_MS,
        perMille: { dead: 10, waiting: 0, discarded: 0, skipped: 0 },
        attemptsPercent: 0,
        dataBytes: DATA_BYTES,
        data: DATA,
      },
      (done) => onProgress(`filling ${done.toLocaleString('en')} deliveries`),
    );
    const posthorn = await startPosthorn(postgres);
    try {
      const size = `of ${events.toLocaleString('en')} events of ${DATA_BYTES} bytes`;
      const yesterday = events - Math.ceil((events / 28) * 1.5);
      const since = new Date(Date.now() - 2 * DAY_MS).toISOString();
      return [
        await measure(posthorn, `an order of four weeks ago ${size}`, orderOf(123), ''),
        await measure(
          posthorn,
          `an order of yesterday, with since, ${size}`,
          orderOf(yesterday),
          `&since=${since}`,
        ),
      ];
    } finally {
      await posthorn.stop();
    }
  },
};

/** Requests page after page, as the console does, until the order is found. Then it reads the event's attempts. */
async function measure(posthorn: Posthorn, name: string, order: string, query: string): Promise<Figure> {
  const startedAt = performance.now();
  let cursor: string | null = null;
  let found: { id: string } | undefined;
  do {
    const page: { data: { id: string }[]; next_cursor: string | null } = await posthorn.api(
      'GET',
      `/v1/events?where=data.order_id:${order}${query}${cursor === null ? '' : `&cursor=${cursor}`}`,
    );
    found = page.data[0];
    cursor = page.next_cursor;
  } while (found === undefined && cursor !== null);
  if (found === undefined) throw new Error(`The search has not found ${order}.`);
  await posthorn.api('GET', `/v1/events/${found.id}/attempts`);
  return {
    name,
    value: (performance.now() - startedAt) / 1000,
    unit: 's',
    goal: { atMost: GOAL_SECONDS },
    limit: { atMost: GOAL_SECONDS },
  };
}
