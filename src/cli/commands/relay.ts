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
  summary: "carry events over from another PostgreSQL's outbox table or log",
  usage: `posthorn relay --from postgres://… [--mode poll|cdc] [--keep]
       posthorn relay init --from postgres://… [--mode poll|cdc] [--print]`,
  about: `Reads events that applications commit in their own database, in the same transaction as everything else, and
brings each of them to Posthorn (DATABASE_URL) exactly once. \`init\` makes the table posthorn_outbox there and, for
--mode cdc, a publication and a replication slot; with --print it shows the SQL instead.
  --mode poll  reads the table again and again. Any number of relays at once.
  --mode cdc   follows the log: inserts into the table, and pg_logical_emit_message(true, 'posthorn', '{…}') without
               one. Needs wal_level = logical and a role with REPLICATION. Further relays stand by.
Needs neither POSTHORN_ADMIN_KEY nor POSTHORN_ENCRYPTION_KEY.`,
  actions: ['init'],
  run: (args) => (args.positionals[1] === 'init' ? runInit(args) : runRelay(args)),
};

/** Loaded only here: `posthorn help` should not wait for it. */
const wiring = () => import('../../relay/index.ts');
const GRACE_MS = 3000;

async function runInit({ flags, wantsPrint }: Arguments): Promise<number> {
  const config = loadConfig({ mode: 'serve', env: process.env, flags });
  const { initRelay, initSql } = await wiring();
  if (wantsPrint) {
    print(initSql(config));
    return 0;
  }
  return explained(config, async () => {
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
  return explained(config, async () => {
    const { startRelay } = await wiring();
    const exitCode = await runUntilStopped({
      log,
      deadlineMs: config.drainMs + GRACE_MS,
      stopRequests: (requests) => {
        stopBecauseOfFailure = () => requests.stop('it cannot go on');
        return signalsOfUser(requests);
      },
      start: async (running, stopping) => {
        const started = await startRelay({
          config,
          log,
          failed: (error) => {
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

async function explained(
  around: { readonly databaseUrl: string | null },
  work: () => Promise<number>,
): Promise<number> {
  try {
    return await work();
  } catch (error) {
    const explanation = explainError(error, around);
    if (explanation === null) throw error;
    printError(explanation.message);
    return explanation.exitCode;
  }
}
