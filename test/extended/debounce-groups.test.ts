/** FAN-4: a debounce group may have very many waiting deliveries. Other endpoints must not wait for its end. */
import { expect, onTestFinished, test } from 'vitest';
import { newId, type Uuid } from '../../src/domain/ids.ts';
import { MAX_ENDED } from '../../src/ports/debouncer.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import { createPostgresDeliveryQueue } from '../../src/postgres/delivery-queue.ts';
import { createTestDatabase } from '../support/database.ts';

const GROUP = Number(process.env.DEBOUNCE_GROUP ?? 100_000);
const HOUR_MS = 3_600_000;

test(`a group of ${GROUP} ends in short calls, and its newest delivery is sent once, after the last of them`, async () => {
  const test = await createTestDatabase();
  onTestFinished(() => test.drop());
  const database = openDatabase({
    connectionString: test.url,
    apiConnections: 1,
    dispatchConnections: 1,
    onIdleError: () => {},
  });
  onTestFinished(() => database.close());
  const queue = createPostgresDeliveryQueue(database);
  const endpointId = newId(Date.now());
  // The first call is made while the queue is empty: its plans must hold for a full one.
  const now = Date.now();
  const settings = { key: 'data.order', mode: 'last', windowMs: HOUR_MS, maxWaitMs: HOUR_MS } as const;
  const ask = (id: Uuid, at: number) =>
    queue.decideDebounce({
      endpointId,
      settings,
      now: at,
      asked: [{ id, attempts: 0 }],
      underWay: [],
      onWireMs: 60_000,
      maxEnded: MAX_ENDED,
    });
  await ask(newId(now), now);
  await test.query(
    `with ids as materialized (
       select (lpad(to_hex($2::bigint), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid as id
         from generate_series(1, $3::int) as n order by n
     ),
     keys as (
       insert into posthorn.debounce_keys (delivery_id, endpoint_id, key, since)
       select id, $1, 'a', to_timestamp($2::bigint / 1000.0) from ids
     )
     insert into posthorn.queue (id, endpoint_id, tenant, event_type) select id, $1, 'acme', 'a.b' from ids`,
    [endpointId, now, GROUP],
  );
  const [row] = await test.query<{ id: Uuid }>('select id from posthorn.queue order by seq desc limit 1');
  const newest = row!.id;
  const durations: number[] = [];
  let ended = 0;
  for (let isSent = false; !isSent; ) {
    const startedAt = performance.now();
    const { decisions, skipped } = await ask(newest, now + HOUR_MS);
    durations.push(performance.now() - startedAt);
    expect(skipped.length).toBeLessThanOrEqual(MAX_ENDED);
    ended += skipped.length;
    const decision = decisions.get(newest)!;
    isSent = decision.kind === 'send';
    if (isSent) expect(decision.debounced).toBe(GROUP - 1);
    else expect(decision).toMatchObject({ kind: 'wait', until: now + HOUR_MS });
  }
  expect(ended).toBe(GROUP - 1);
  expect(durations.length).toBeLessThan(GROUP / MAX_ENDED + 3);
  const median = durations.toSorted((a, b) => a - b)[Math.floor(durations.length / 2)]!;
  if (process.env.DEBOUNCE_GROUP)
    process.stdout.write(
      `${durations.length} calls, median ${median} ms, longest ${Math.max(...durations)} ms\n`,
    );
  expect(median).toBeLessThan(1_000);
}, 600_000);
