/** A tenant whose events go to many endpoints does not make the others wait for its commits. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createEndpoint, newTenant, publish, usePosthorn } from '../support/posthorn.ts';

const ENDPOINTS = 200;
const EVENTS = 110;

const posthorn = usePosthorn();

test('another tenant is answered quickly while events with 200 deliveries each are stored', async () => {
  const [wide, other] = [newTenant(), newTenant()];
  for (let n = 0; n < ENDPOINTS; n += 20)
    await Promise.all(
      Array.from({ length: 20 }, () => createEndpoint(posthorn, { url: 'http://127.0.0.1:9', tenant: wide })),
    );
  await publish(posthorn, { tenant: other, type: 'a.b', data: 0 });

  // Due tomorrow, because the test measures storing, not sending.
  const deliver_at = new Date(Date.now() + 86_400_000).toISOString();
  const events = Array.from({ length: EVENTS }, (_, n) => ({
    tenant: wide,
    type: 'a.b',
    data: n,
    deliver_at,
  }));
  let isStored = false;
  const attack = posthorn.api('POST', '/v1/events/batch', { events }).finally(() => {
    isStored = true;
  });
  let answers = 0;
  while (!isStored) {
    await publish(posthorn, { tenant: other, type: 'a.b', data: 1 });
    answers += 1;
    await sleep(5);
  }
  const { body } = await attack;
  expect(body.results.map(({ deliveries }: { deliveries: number }) => deliveries)).toEqual(
    events.map(() => ENDPOINTS),
  );
  // If the attack were stored as one batch, the first request would wait for almost all of it, and few would follow. A number
  // of answers does not depend on the speed of the machine; one slow answer on a busy machine proves nothing.
  expect(answers).toBeGreaterThan(5);

  const order = await posthorn.database.query<{ data: Buffer }>(
    `select e.data from posthorn.events e
       join (select distinct on (substr(id::text, 1, 32)) substr(id::text, 1, 32) as event, seq
               from posthorn.queue where tenant = $1 order by 1, seq) q on q.event = substr(e.id::text, 1, 32)
      order by q.seq`,
    [wide],
  );
  expect(order.map(({ data }) => Number(data.toString()))).toEqual(events.map(({ data }) => data));
});
