/**
 * The previous release runs beside this one on one database, as it does during an upgrade: the schema is migrated first,
 * then the nodes are replaced one by one.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { needs } from '../support/needs.ts';
import {
  ADMIN_KEY,
  arrivals,
  createEndpoint,
  expectStatus,
  MAIN,
  newReceiver,
  publish,
  runPosthorn,
  startTestPosthorn,
  TEST_SETTINGS,
  type TestPosthorn,
  waitingIn,
} from '../support/posthorn.ts';
import { startProcess } from '../support/processes.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** The last release: its tag. There is none yet, so it is the commit before the schema got its nineteenth migration. */
const PREVIOUS = '4ef9b67';

const hasCommit =
  spawnSync('git', ['cat-file', '-e', `${PREVIOUS}^{commit}`], { cwd: ROOT, stdio: 'ignore' }).status === 0;
const missing = hasCommit ? null : `this clone does not have the previous release (${PREVIOUS})`;

/** Settings that the previous release does not know. They are left out, because it would log a warning for each. */
const SETTINGS_OF_HEAD = ['POSTHORN_LAME_DUCK_MS', 'POSTHORN_READY_NEEDS_WORKERS'];

async function checkOut(directory: string): Promise<string> {
  const archive = execFileSync('git', ['archive', PREVIOUS, 'src', 'package.json', 'tsconfig.json'], {
    cwd: ROOT,
    maxBuffer: 2 ** 28,
  });
  execFileSync('tar', ['x', '-C', directory], { input: archive });
  // It has the same dependencies, except for one that it imports and uses only on a terminal.
  await symlink(path.join(ROOT, 'node_modules'), path.join(directory, 'node_modules'));
  const pretty = path.join(directory, 'src/node_modules/pino-pretty');
  await mkdir(pretty, { recursive: true });
  await writeFile(path.join(pretty, 'package.json'), '{ "type": "module", "main": "index.js" }');
  await writeFile(path.join(pretty, 'index.js'), 'export default () => process.stdout;');
  const main = path.join(directory, 'src/cli/main.ts');
  if (!existsSync(main)) throw new Error(`${PREVIOUS} has no src/cli/main.ts.`);
  return main;
}

describe('the previous release', needs(missing), () => {
  let directory: string;
  let database: TestDatabase;
  let previousMain: string;
  beforeAll(async () => {
    directory = await mkdtemp(path.join(tmpdir(), 'posthorn-previous-'));
    previousMain = await checkOut(directory);
    database = await createTestDatabase({ empty: true });
  });
  afterAll(async () => {
    await database?.drop();
    await rm(directory, { recursive: true, force: true });
  });

  const startPrevious = (): Promise<TestPosthorn> => {
    const known = Object.entries(TEST_SETTINGS).filter(([name]) => !SETTINGS_OF_HEAD.includes(name));
    const env = { ...Object.fromEntries(known), DATABASE_URL: database.url };
    return runPosthorn(['serve'], env, ADMIN_KEY, { main: previousMain, cwd: directory });
  };

  const ownersOfShards = (): Promise<{ shards: number }[]> =>
    database.query(
      'select count(*)::int as shards from posthorn.shards where owner is not null group by owner',
    );

  test('delivers beside this one on the new schema, each event exactly once', async () => {
    const previous = await startPrevious();
    let head: TestPosthorn | undefined;
    try {
      const receiver = await newReceiver();
      const endpoints = await Promise.all(
        Array.from({ length: 12 }, (_, index) =>
          createEndpoint(previous, {
            url: `${receiver.url}/${index}`,
            tenant: `tenant-${index}`,
          }),
        ),
      );
      const ids: string[] = [];
      const publishThrough = async (posthorn: TestPosthorn, count: number): Promise<void> => {
        for (let index = 0; index < count; index += 1) {
          const tenant = endpoints[index % endpoints.length]!.tenant;
          ids.push((await publish(posthorn, { type: 'order.created', tenant, data: { index } })).id);
        }
      };
      await publishThrough(previous, 24);

      const migration = startProcess([MAIN, 'migrate'], { env: { DATABASE_URL: database.url } });
      expect(await migration.ended).toBe(0);
      await publishThrough(previous, 24);

      head = await startTestPosthorn({ database });
      await eventually('both own shards', async () => {
        const owners = await ownersOfShards();
        return owners.length === 2 && owners.every(({ shards }) => shards === 128);
      });
      await Promise.all([publishThrough(previous, 120), publishThrough(head, 120)]);

      // Each sees what the other changes.
      const moved = await newReceiver();
      for (const [changing, other] of [
        [previous, head],
        [head, previous],
      ] as const) {
        const { id, tenant } = endpoints[0]!;
        const url = `${moved.url}/${changing === head ? 'head' : 'previous'}`;
        await expectStatus(changing.api('PATCH', `/v1/endpoints/${id}`, { url }), 200);
        await publish(other, { type: 'order.moved', tenant, data: {} });
      }
      await moved.waitFor(2);
      expect(moved.requests.map(({ path: at }) => at)).toEqual(['/previous', '/head']);

      await eventually('nothing waits', async () => (await waitingIn(head!)) === 0);
      expect(arrivals(receiver.requests)).toEqual(new Map(ids.map((id) => [id, 1])));

      await previous.stop();
      await eventually('this one owns all shards', async () => (await ownersOfShards())[0]!.shards === 256);
      await publishThrough(head, 24);
      await eventually('nothing waits', async () => (await waitingIn(head!)) === 0);
      expect(arrivals([...receiver.requests, ...moved.requests]).size).toBe(ids.length + 2);
      expect([...arrivals(receiver.requests).values()].every((count) => count === 1)).toBe(true);
    } finally {
      await head?.stop();
      await previous.stop();
    }
  });

  test('does not start on the new schema, and says so', async () => {
    const again = startProcess([previousMain, 'serve'], {
      env: { ...TEST_SETTINGS, DATABASE_URL: database.url },
      cwd: directory,
    });
    expect(await again.ended).toBe(1);
    expect(again.output()).toContain('this Posthorn knows only');
  });
});
