/** VER-1, VER-3: docs/versions.md. Every request of the dual write is sent in order, and the commands run as printed. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parseHttp, readBlocks } from '../support/doc-blocks.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryDirectory } from '../support/postgres.ts';
import {
  ADMIN_KEY,
  type Answer,
  MAIN,
  newReceiver,
  TEST_SETTINGS,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';
import { startProcess } from '../support/processes.ts';

const posthorn = usePosthorn();
const blocks = readBlocks('docs/versions.md').filter(
  ({ options }) => options['run-by'] === 'test/e2e/versions-docs.test.ts',
);

test('the dual write in docs/versions.md works as printed: additive, announced, then removed', async () => {
  const requests = blocks.filter(({ language }) => language === 'http').map(({ text }) => parseHttp(text));
  expect(requests).toHaveLength(8);
  const send = async (request: (typeof requests)[number]): Promise<Answer> => {
    const answer = await posthorn.api(request.method, request.path, request.body);
    expect(answer.status, `${request.method} ${request.path}: ${answer.text}`).toBeLessThan(300);
    return answer;
  };
  const receiver = await newReceiver();
  await posthorn.api('POST', '/v1/endpoints', { tenant: 'acme', url: receiver.url, events: ['customer.*'] });
  /** Publishes, and returns the request that the receiver got. */
  const publish = async (request: (typeof requests)[number]) => {
    const { id } = (await send(request)).body;
    await untilDeliveries(posthorn, id, 'delivered');
    return receiver.requests.find(({ headers }) => headers['webhook-id'] === id)!;
  };

  const [oldVersion, check, bothFields, publishBoth, deprecateOld, deprecateBoth, newVersion, publishNew] =
    requests;
  await send(oldVersion!);
  const checked = (await send(check!)).body;
  expect([checked.compatibility.verdict, checked.refusal]).toEqual(['additive', null]);
  expect((await send(bothFields!)).body.compatibility.verdict).toBe('additive');
  const dual = await eventually('the new version is known', async () => {
    const request = await publish(publishBoth!);
    return request.json().schema_version === '2026-04-01' ? request : undefined;
  });
  expect(dual.json().data).toEqual({ id: 'cus_1', name: 'Ann Lee', full_name: 'Ann Lee' });
  expect(dual.headers.sunset).toBeUndefined();

  for (const deprecate of [deprecateOld, deprecateBoth])
    expect((await send(deprecate!)).body).toMatchObject({ status: 'deprecated' });
  // The producer publishes as before.
  const announced = await eventually('the sunset is announced', async () => {
    const request = await publish(publishBoth!);
    return request.headers.sunset === undefined ? undefined : request;
  });
  expect(announced.headers.sunset).toBe('Sun, 31 Jan 2027 00:00:00 GMT');
  expect(announced.json().schema_version).toBe('2026-04-01');

  expect((await send(newVersion!)).body.compatibility.verdict).toBe('breaking');
  const removed = await eventually('the last version is known', async () => {
    const request = await publish(publishNew!);
    return request.json().schema_version === '2027-02-01' ? request : undefined;
  });
  expect(removed.json().data).toEqual({ id: 'cus_1', full_name: 'Ann Lee' });
});

test('the commands of docs/versions.md pull, compare and push the catalogue, and write types', async () => {
  const folder = await temporaryDirectory('posthorn-versions-');
  onTestFinished(() => rm(folder, { recursive: true }));
  const yaml = readBlocks('docs/versions.md').find(({ language }) => language === 'yaml')!;
  const commands = blocks
    .find(({ language }) => language === 'sh')!
    .text.split('\n')
    .map((line) => line.replace(/ *#.*$/, '').replace(/^npx posthorn /, ''));
  const run = async (command: string): Promise<string> => {
    const [args, target] = command.split(' > ');
    const child = startProcess([MAIN, ...args!.split(' ')], {
      cwd: folder,
      env: { ...TEST_SETTINGS, POSTHORN_PUBLIC_URL: posthorn.url, POSTHORN_ADMIN_KEY: ADMIN_KEY },
    });
    expect(await child.ended, `${command}: ${child.output()}`).toBe(0);
    if (target !== undefined) await writeFile(path.join(folder, target), child.stdout());
    return child.stdout();
  };

  const [pull, diff, push, types] = commands;
  await run(pull!);
  await writeFile(path.join(folder, 'catalogue.yaml'), yaml.text);
  expect(await run(diff!)).toMatch(/order\.created/);
  await run(push!);
  await run(pull!);
  expect(await readFile(path.join(folder, 'catalogue.yaml'), 'utf8')).toMatch(/order\.created/);
  await run(types!);
  expect(await readFile(path.join(folder, 'events.d.ts'), 'utf8')).toMatch(
    /Envelope<"order\.created", "2026-04-01"/,
  );
});
