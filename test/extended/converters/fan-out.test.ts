/** A large fan-out to few pins: each version is converted and stored once. */
import { readFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createTestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { createManyEndpoints } from '../../support/many-endpoints.ts';
import { temporaryDirectory } from '../../support/postgres.ts';
import { expectStatus, newReceiver, publish, startTestPosthorn } from '../../support/posthorn.ts';

const PINS = { v1: 334, v2: 333, v3: 333 };

test('VER-2: an event for 1,000 endpoints with 3 pins is converted 3 times', async () => {
  const folder = await temporaryDirectory('posthorn-fan-out-');
  const runs = path.join(folder, 'runs.txt');
  const config = path.join(folder, 'posthorn.config.ts');
  writeFileSync(runs, '');
  // Each run leaves a line, whichever process it runs in.
  const steps = Object.keys(PINS).map(
    (pin) =>
      `'v4→${pin}': (data) => { appendFileSync(${JSON.stringify(runs)}, '${pin}\\n'); return { ...data, pin: '${pin}' }; },`,
  );
  writeFileSync(
    config,
    `import { appendFileSync } from 'node:fs';
     export default { converters: { 'order.created': { ${steps.join('\n')} } } };`,
  );
  const database = await createTestDatabase();
  const receiver = await newReceiver();
  for (const [pin, count] of Object.entries(PINS)) {
    const url = `${receiver.url}/${pin}`;
    await createManyEndpoints(database, { tenant: 'wide', url, count, config: { api_version: pin } });
  }
  const posthorn = await startTestPosthorn({
    database,
    env: { POSTHORN_CONFIG: config, POSTHORN_CONVERTER_TIMEOUT_MS: '30s' },
  });
  onTestFinished(async () => {
    await posthorn.stop();
    await database.drop();
    await rm(folder, { recursive: true });
  });
  for (const version of [...Object.keys(PINS), 'v4'])
    await expectStatus(posthorn.api('PUT', `/v1/event-types/order.created/versions/${version}`, {}), 201);
  await eventually('the versions are known', async () => {
    const { body } = await posthorn.api('GET', '/v1/event-types/order.created/pins?version=v3&limit=1');
    return body.data.length === 1;
  });

  const event = { tenant: 'wide', type: 'order.created', schema_version: 'v4', data: { id: 1 } };
  const { deliveries } = await publish(posthorn, event);
  expect(deliveries).toBe(1_000);
  const requests = await receiver.waitFor(1_000, 120_000);
  const received = Object.groupBy(requests, ({ path }) => path.split('/')[1]!);
  for (const [pin, count] of Object.entries(PINS)) {
    expect(received[pin]).toHaveLength(count);
    expect(new Set(received[pin]!.map((request) => JSON.stringify(request.json().data)))).toEqual(
      new Set([JSON.stringify({ id: 1, pin })]),
    );
  }
  expect(readFileSync(runs, 'utf8').trim().split('\n').sort()).toEqual(Object.keys(PINS));
  const stored = await database.query('select version from posthorn.converted_payloads order by version');
  expect(stored).toEqual(Object.keys(PINS).map((version) => ({ version })));
});
