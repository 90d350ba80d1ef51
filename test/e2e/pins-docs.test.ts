/** VER-2: docs/pins.md. Every request in it is sent in order, with its converters, and does what the page says. */
import { rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import { parseHttp, readBlocks } from '../support/doc-blocks.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryDirectory } from '../support/postgres.ts';
import { type Answer, newReceiver, startTestPosthorn, untilDeliveries } from '../support/posthorn.ts';

test('the rename of a field in docs/pins.md works as printed, from the first version to the last', async () => {
  const blocks = readBlocks('docs/pins.md');
  const config = blocks.find(({ language }) => language === 'ts')!;
  const requests = blocks.filter(({ language }) => language === 'http').map(({ text }) => parseHttp(text));
  const folder = await temporaryDirectory('posthorn-docs-');
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = path.join(folder, 'posthorn.config.ts');
  await writeFile(file, config.text);
  const database = await createTestDatabase();
  const posthorn = await startTestPosthorn({ database, env: { POSTHORN_CONFIG: file } });
  onTestFinished(async () => {
    await posthorn.stop();
    await database.drop();
  });
  const receiver = await newReceiver();
  let endpointId = '';
  const send = async (request: (typeof requests)[number]): Promise<Answer> => {
    const text = JSON.stringify(request.body)?.replace('https://example.com/hooks', receiver.url);
    const answer = await posthorn.api(request.method, request.path.replace('{id}', endpointId), text);
    expect(answer.status, `${request.method} ${request.path}: ${answer.text}`).toBeLessThan(300);
    return answer;
  };
  const steps = requests.map(({ method, path: target }) => `${method} ${target}`);
  expect(steps).toHaveLength(10);

  const [oldVersion, endpoint, newVersion, event, preview, move, deprecate, pins, retire, endType] = requests;
  await send(oldVersion!);
  endpointId = (await send(endpoint!)).body.id;
  await send(newVersion!);
  await eventually('the versions are known', async () => {
    const { body } = await posthorn.api('POST', `/v1/endpoints/${endpointId}/preview`, {
      api_version: '2026-04-01',
    });
    if (body.proposed?.version === '2026-04-01') return true;
    await posthorn.api('POST', '/v1/events', {
      tenant: 'acme',
      type: 'order.created',
      data: (newVersion!.body as { example: object }).example,
      schema_version: '2026-04-01',
    });
    return false;
  });
  const published = (await send(event!)).body.id;
  await untilDeliveries(posthorn, published, 'delivered');
  const got = (id: string) => receiver.requests.find(({ headers }) => headers['webhook-id'] === id)!;
  expect(got(published).json().data).toEqual({ id: 'ord_2', name: 'Ann Lee' });

  const dryRun = (await send(preview!)).body;
  expect(dryRun.current.data).toEqual({ id: 'ord_2', name: 'Ann Lee' });
  expect(dryRun.proposed.data).toEqual({ id: 'ord_2', first_name: 'Ann', last_name: 'Lee' });

  await send(deprecate!);
  const announced = await eventually('the sunset is announced', async () => {
    const { id } = (await send(event!)).body;
    await untilDeliveries(posthorn, id, 'delivered');
    return got(id).headers.sunset;
  });
  expect(announced).toBe('Sun, 31 Jan 2027 00:00:00 GMT');
  expect((await send(pins!)).body.data).toMatchObject([{ endpoint_id: endpointId, version: '2025-10-01' }]);

  await send(move!);
  expect((await send(pins!)).body.data).toEqual([]);
  await send(retire!);
  const last = (await send(event!)).body.id;
  await untilDeliveries(posthorn, last, 'delivered');
  expect(got(last).json()).toMatchObject({ data: { id: 'ord_2', first_name: 'Ann', last_name: 'Lee' } });
  expect(got(last).headers['posthorn-conversion']).toBeUndefined();

  // The end of a whole type, which has no versions.
  await send(endType!);
  const headers = await eventually('the sunset of the type is announced', async () => {
    const closed = { tenant: 'acme', type: 'order.archived', data: {} };
    const { id } = (await posthorn.api('POST', '/v1/events', closed)).body;
    await untilDeliveries(posthorn, id, 'delivered');
    return got(id).headers.sunset !== undefined && got(id).headers;
  });
  expect(headers).toMatchObject({
    sunset: 'Sun, 31 Jan 2027 00:00:00 GMT',
    deprecation: expect.stringMatching(/^@\d{10}$/),
  });
});
