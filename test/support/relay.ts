/** The real relay as a process, and a shop's database that it reads from. */
import { randomBytes } from 'node:crypto';
import { onTestFinished } from 'vitest';
import { initStatements } from '../../src/relay/init.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';
import { eventually } from './eventually.ts';
import { MAIN } from './posthorn.ts';
import { startProcess, type TestProcess } from './processes.ts';

export interface RelayOptions {
  readonly from: string;
  readonly to: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const SETTINGS = {
  POSTHORN_RELAY_POLL_MS: '10',
  POSTHORN_RELAY_REPORT_MS: '100',
  POSTHORN_LOG_LEVEL: 'info',
};

const relayProcess = (args: readonly string[], { from, to, env }: RelayOptions): TestProcess =>
  startProcess([MAIN, 'relay', ...args], {
    env: { ...SETTINGS, DATABASE_URL: to, POSTHORN_RELAY_FROM: from, ...env },
  });

/** Resolves when the relay is running. It is killed after the test. */
export async function startRelay(options: RelayOptions): Promise<TestProcess> {
  const relay = relayProcess(options.args ?? [], options);
  onTestFinished(async () => {
    await relay.kill('SIGKILL');
  });
  await eventually(
    'the relay runs',
    () => {
      if (!relay.running) throw new Error(`The relay ended:\n${relay.output()}`);
      return relay.stdout().includes('Relaying from');
    },
    { timeoutMs: 30_000, saw: relay.output },
  );
  return relay;
}

/** Runs a relay command that ends by itself. */
export async function runRelay(
  args: readonly string[],
  options: RelayOptions,
): Promise<{ ended: number | NodeJS.Signals; output: string }> {
  const relay = relayProcess(args, options);
  const ended = await relay.ended;
  return { ended, output: relay.output() };
}

export interface Shop extends TestDatabase {
  readonly slot: string;
}

/**
 * An empty database with the objects that `relay init` creates. The database and its slot are dropped after the test.
 */
export async function newShop(
  mode: 'poll' | 'cdc' | null,
  server: { serverUrl?: string } = {},
): Promise<Shop> {
  const database = await createTestDatabase({ empty: true, ...server });
  const slot = `posthorn_${randomBytes(4).toString('hex')}`;
  onTestFinished(async () => {
    await dropSlot(database, slot);
    await database.drop();
  });
  const names = { table: 'posthorn_outbox', publication: 'posthorn_outbox', slot };
  if (mode !== null) for (const statement of initStatements(names, mode)) await database.query(statement);
  return { ...database, slot };
}

/** Retries: the walsender may notice late that the relay has ended. */
export async function dropSlot(database: TestDatabase, slot: string): Promise<void> {
  await eventually('the slot is free', async () => {
    const [state] = await database.query<{ active_pid: number | null }>(
      'select active_pid from pg_replication_slots where slot_name = $1',
      [slot],
    );
    if (state === undefined) return true;
    if (state.active_pid === null)
      await database.query('select pg_drop_replication_slot($1)', [slot]).catch(() => {});
    return false;
  });
}
