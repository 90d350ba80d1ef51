import type { Pooling } from '../../postgres/pooler.ts';
import type { SessionFacts } from '../../postgres/queries/check-session.ts';
import type {
  ConnectionLimit,
  PartitionFacts,
  ServerFacts,
  WorkerFacts,
} from '../../postgres/queries/inspect.ts';
import { type Finding, ok, problem, warning } from './finding.ts';

const OLDEST_SERVER = 150_000;

export function judgeVersion({ versionNumber, version, isStandby }: ServerFacts): Finding {
  const check = 'Database';
  if (versionNumber < OLDEST_SERVER)
    return problem(check, `PostgreSQL ${version} is too old.`, 'Use PostgreSQL 15 or later.');
  if (isStandby)
    return problem(check, 'It is a standby: nothing can be written.', 'Name the primary in DATABASE_URL.');
  return ok(check, `PostgreSQL ${version}`);
}

/** What a 202 rests on. */
export function judgeDurability({ settings }: ServerFacts): Finding {
  const check = 'Durability';
  const off = ['fsync', 'full_page_writes'].filter((name) => settings[name] === 'off');
  if (off.length > 0)
    return problem(
      check,
      `${off.join(' and ')} ${off.length === 1 ? 'is' : 'are'} off: a power failure can destroy the database, and events that were answered 202.`,
      `Set ${off.map((name) => `${name} = on`).join(', ')} in postgresql.conf and reload.`,
    );
  if (settings.default_transaction_read_only === 'on')
    return problem(
      check,
      'default_transaction_read_only is on: nothing can be written.',
      'Switch it off for this role or database.',
    );
  if (settings.synchronous_commit === 'off')
    return ok(check, 'synchronous_commit is off by default; Posthorn switches it on for its own commits');
  return ok(check, `fsync on, synchronous_commit ${settings.synchronous_commit ?? 'on'}`);
}

export function judgeVacuum({ settings }: ServerFacts): Finding {
  const check = 'Autovacuum';
  return settings.autovacuum === 'on' && settings.track_counts === 'on'
    ? ok(check, 'on')
    : problem(
        check,
        'Off: the queue is rewritten all the time and would grow without end.',
        'Set autovacuum = on and track_counts = on in postgresql.conf and reload.',
      );
}

const LIMIT_OF: Readonly<Record<ConnectionLimit['of'], { whose: string; todo: string }>> = {
  server: { whose: 'the server', todo: 'Raise max_connections' },
  database: { whose: 'the database', todo: 'Raise its limit (ALTER DATABASE … CONNECTION LIMIT)' },
  role: { whose: 'the role', todo: 'Raise its limit (ALTER ROLE … CONNECTION LIMIT)' },
};

/** By the limit that leaves the least room. */
export function judgeConnections(
  { connectionLimits }: ServerFacts,
  { processes, perProcess }: { processes: number; perProcess: number },
): Finding {
  const check = 'Connections';
  const wanted = processes * perProcess;
  const room = ({ allowed, usedByOthers }: ConnectionLimit): number => allowed - usedByOthers;
  const tightest = connectionLimits.toSorted((a, b) => room(a) - room(b))[0]!;
  const free = room(tightest);
  const { whose, todo: raise } = LIMIT_OF[tightest.of];
  const detail = `up to ${wanted} for ${processes === 1 ? 'one process' : `${processes} processes`}; ${whose} has ${free} of ${tightest.allowed} for Posthorn`;
  if (wanted <= free * 0.8) return ok(check, detail);
  const todo = `${raise}, or lower POSTHORN_DATABASE_POOL_SIZE or --processes.`;
  return wanted <= free
    ? warning(check, `${detail}: little is left.`, todo)
    : problem(check, `${detail}.`, todo);
}

const GRANTS_SHOWN = 5;

export function judgeGrants(missing: readonly string[]): Finding {
  const check = 'Grants';
  if (missing.length === 0) return ok(check, 'the role may use every table, sequence and function');
  const rest = missing.length - GRANTS_SHOWN;
  const shown = missing.slice(0, GRANTS_SHOWN).join(', ') + (rest > 0 ? ` and ${rest} more` : '');
  return problem(
    check,
    `The role lacks ${shown}.`,
    'Let the owner of the schema run the GRANTs of docs/operate/roles.md, once more after each upgrade unless default privileges are set.',
  );
}

/** The database that a relay reads from. */
export function judgeSource({ settings, version }: ServerFacts, mode: 'poll' | 'cdc'): Finding {
  const check = 'Relay source';
  if (mode === 'cdc' && settings.wal_level !== 'logical')
    return problem(
      check,
      `wal_level is ${settings.wal_level}: its log cannot be followed.`,
      'Set wal_level = logical there and restart that server, or let the relay poll (POSTHORN_RELAY_MODE=poll).',
    );
  return ok(check, `PostgreSQL ${version}, read by ${mode === 'cdc' ? 'following its log' : 'polling'}`);
}

export function judgeSession({ isOneSession, receivesNotifications }: SessionFacts): Finding {
  const check = 'Session';
  return isOneSession && receivesNotifications
    ? ok(check, 'locks are held and notifications arrive')
    : problem(
        check,
        `${isOneSession ? 'Notifications do not arrive' : 'The connection is shared out by transaction'}: there seems to be a pooler in between (PgBouncer in transaction mode, say).`,
        'Let DATABASE_URL lead straight to PostgreSQL, or through the pooler in session mode.',
      );
}

/** Of DATABASE_URL, where what cannot work has been ruled out. */
export function judgePooling(pooling: Pooling, hasDirectUrl: boolean): Finding {
  const check = 'Pooler';
  if (pooling === 'none') return ok(check, 'none between Posthorn and PostgreSQL');
  if (pooling === 'session') return ok(check, 'in session mode: each connection keeps its own');
  return ok(
    check,
    hasDirectUrl
      ? 'in transaction mode; leases, LISTEN and NOTIFY use POSTHORN_DIRECT_DATABASE_URL'
      : 'in transaction mode',
  );
}

const CLOCK_WARNING_MS = 1_000;
const CLOCK_PROBLEM_MS = 60_000;

/** Posthorn goes by the database's clock, so a difference does no harm by itself; but one of the two is wrong. */
export function judgeClock(differenceMs: number): Finding {
  const check = 'Clock';
  const seconds = `${(Math.abs(differenceMs) / 1000).toFixed(1)} s`;
  const detail = `This machine is ${seconds} ${differenceMs > 0 ? 'ahead of' : 'behind'} the database`;
  const todo = 'Let both follow a time server (chrony, systemd-timesyncd).';
  const size = Math.abs(differenceMs);
  if (size < CLOCK_WARNING_MS) return ok(check, 'the same here and at the database');
  if (size < CLOCK_PROBLEM_MS) return warning(check, `${detail}.`, todo);
  return problem(check, `${detail}: receivers refuse signatures whose time is that wrong.`, todo);
}

export function judgeMigrations(applied: readonly string[] | null, known: readonly string[]): Finding {
  const check = 'Schema';
  const todo = 'Run `posthorn migrate`; `dev` and `serve` also do it at their start.';
  if (applied === null) return warning(check, 'This database has no schema of Posthorn yet.', todo);
  if (applied.length > known.length)
    return problem(
      check,
      `The database is at ${applied.at(-1)}, which this Posthorn does not know.`,
      'Run the newer Posthorn that made it; going back is not supported.',
    );
  const missing = known.slice(applied.length);
  return missing.length === 0
    ? ok(check, `up to date (${applied.at(-1)})`)
    : warning(
        check,
        `The schema is at ${applied.length === 0 ? 'no version yet' : `version ${applied.length} (${applied.at(-1)})`}; ` +
          `${missing.length} ${missing.length === 1 ? 'migration is' : 'migrations are'} missing, the next is ${missing[0]}.`,
        'Run `posthorn migrate` as the owner of the schema: it says what keeps a migration from being applied.',
      );
}

export function judgeWorkers(
  { workers, unowned }: { workers: readonly WorkerFacts[]; unowned: number },
  { deadAfterMs, shouldRun }: { deadAfterMs: number; shouldRun: boolean },
): Finding {
  const check = 'Shards';
  const living = workers.filter(({ silentMs }) => silentMs < deadAfterMs);
  const owners = living.filter(({ shards }) => shards > 0);
  const owned = owners.reduce((sum, { shards }) => sum + shards, 0);
  if (living.length === 0 && !shouldRun) return ok(check, 'no worker runs, as Posthorn does not');
  if (living.length === 0)
    return warning(
      check,
      workers.length === 0 ? 'No worker runs.' : `No worker lives; ${workers.length} fell silent.`,
      'Start one (`posthorn serve`): until then events are accepted and wait.',
    );
  if (owned === 256)
    return ok(check, `all 256 owned, by ${owners.length === 1 ? 'one worker' : `${owners.length} workers`}`);
  return problem(
    check,
    `${256 - owned} of 256 are owned by no living worker (${unowned} by none at all): their endpoints are sent nothing.`,
    'Wait some seconds and look again; if it stays so, the logs of the workers say why. `posthorn serve --role worker` starts another.',
  );
}

const DAY_MS = 86_400_000;

export function judgePartitions(facts: readonly PartitionFacts[]): Finding {
  const check = 'Partitions';
  const todo = 'A running Posthorn makes them by itself: look into its log for "make partitions".';
  const uncovered = facts.filter(({ coversNow }) => !coversNow).map(({ parent }) => parent);
  if (uncovered.length > 0)
    return problem(
      check,
      `${uncovered.join(', ')}: none for the present time, so nothing can be stored.`,
      todo,
    );
  const gaps = facts.filter((each) => each.gaps > 0).map(({ parent }) => parent);
  if (gaps.length > 0)
    return warning(
      check,
      `${gaps.join(', ')}: there are times between two partitions that are in none.`,
      todo,
    );
  const days = Math.floor(Math.min(...facts.map(({ aheadMs }) => aheadMs)) / DAY_MS);
  return days < 1
    ? warning(check, 'They end within a day.', todo)
    : ok(check, `made ahead for ${days} ${days === 1 ? 'day' : 'days'}, without gaps`);
}
