import { loadConfig } from '../../config/index.ts';
import { createLog } from '../../telemetry/log.ts';
import type { Arguments } from '../arguments.ts';
import type { Command } from '../command.ts';
import { explainError } from '../explain-error.ts';
import { ignoreClosedStdout, print, printError } from '../print.ts';
import { runUntilStopped } from '../run-until-stopped.ts';
import { signalsOfUser } from '../stop-requests.ts';

export const relay: Command = {
  name: 'relay',
  summary: 'read events from the outbox table or log of another PostgreSQL',
  usage: `posthorn relay --from postgres://… [--mode poll|cdc] [--keep]
       posthorn relay init --from postgres://… [--mode poll|cdc] [--print]`,
  about: `Reads events that applications commit in their own database, in the same transaction as their other data, and
stores each of them in Posthorn (DATABASE_URL) exactly once. \`init\` creates the table posthorn_outbox there and, for
--mode cdc, a publication and a replication slot; with --print it shows the SQL instead.
  --mode poll  polls the table. Any number of relays may run at once.
  --mode cdc   follows the log: inserts into the table, and pg_logical_emit_message(true, 'posthorn', '{…}') without
               one. Needs wal_level = logical and a role with REPLICATION. Additional relays stand by.
Needs neither POSTHORN_ADMIN_KEY nor POSTHORN_ENCRYPTION_KEY.`,
  actions: ['init'],
  run: (args) => (args.positionals[1] === 'init' ? runInit(args) : runRelay(args)),
};

/** Imported only when needed, so that `posthorn help` stays fast. */
const loadRelay = () => import('../../relay/index.ts');
const GRACE_MS = 3000;

async function runInit({ flags, wantsPrint }: Arguments): Promise<number> {
  const config = loadConfig({ mode: 'serve', env: process.env, flags });
  const { initRelay, initSql } = await loadRelay();
  if (wantsPrint) {
    print(initSql(config));
    return 0;
  }
  return withExplainedErrors(config, async () => {
    print(`Ready: ${await initRelay(config)}\nNow: npx posthorn relay --mode ${config.relayMode} --from …`);
    return 0;
  });
}

async function runRelay({ flags }: Arguments): Promise<number> {
  ignoreClosedStdout();
  const warnings: string[] = [];
  const config = loadConfig({
    mode: 'serve',
    env: process.env,
    flags,
    onWarning: (message) => warnings.push(message),
  });
  const log = createLog(config);
  for (const message of warnings) log.warn(message);
  let failure: { readonly error: unknown } | null = null;
  let stopBecauseOfFailure = (): void => {};
  return withExplainedErrors(config, async () => {
    const { startRelay } = await loadRelay();
    const exitCode = await runUntilStopped({
      log,
      deadlineMs: config.drainMs + GRACE_MS,
      stopRequests: (requests) => {
        stopBecauseOfFailure = () => requests.stop('the relay failed');
        return signalsOfUser(requests);
      },
      start: async (running, stopping) => {
        const started = await startRelay({
          config,
          log,
          onFailed: (error) => {
            failure = { error };
            stopBecauseOfFailure();
          },
        });
        running.push(started);
        if (!stopping.aborted) print(`Relaying from ${started.name} (${config.relayMode}).`);
      },
    });
    if (failure !== null) throw failure.error;
    return exitCode;
  });
}

async function withExplainedErrors(
  context: { readonly databaseUrl: string | null },
  work: () => Promise<number>,
): Promise<number> {
  try {
    return await work();
  } catch (error) {
    const explanation = explainError(error, context);
    if (explanation === null) throw error;
    printError(explanation.message);
    return explanation.exitCode;
  }
}
