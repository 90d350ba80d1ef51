import type { Pooling } from '../../postgres/pooler.ts';
import type { SessionFacts } from '../../postgres/queries/check-session.ts';
import type {
  ConnectionLimit,
  PartitionFacts,
  ServerFacts,
  WorkerFacts,
} from '../../postgres/queries/inspect.ts';
import type { RegionStatus } from '../../postgres/queries/regions.ts';
import { type Finding, ok, problem, warning } from './finding.ts';

const OLDEST_SERVER = 150_000;

export function judgeVersion({ versionNumber, version, isStandby }: ServerFacts): Finding {
  const check = 'Database';
  if (versionNumber < OLDEST_SERVER)
    return problem(check, `PostgreSQL ${version} is too old.`, 'Use PostgreSQL 15 or later.');
  if (isStandby)
    return problem(check, 'It is a standby: nothing can be written.', 'Set DATABASE_URL to the primary.');
  return ok(check, `PostgreSQL ${version}`);
}

/** Checks the settings that make a 202 durable. */
export function judgeDurability({ settings }: ServerFacts): Finding {
  const check = 'Durability';
  const off = ['fsync', 'full_page_writes'].filter((name) => settings[name] === 'off');
  if (off.length > 0)
    return problem(
      check,
      `${off.join(' and ')} ${off.length === 1 ? 'is' : 'are'} off: a power failure can destroy the database and lose events that were answered 202.`,
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

/** Checks whether commits return. */
export function judgeStandby({ settings, commitsWaiting }: ServerFacts): Finding {
  const check = 'Standby';
  const names = settings.synchronous_standby_names ?? '';
  if (names === '') return ok(check, 'commits wait for no standby');
  if (commitsWaiting === 0) return ok(check, `commits wait for ${names}, and return`);
  return problem(
    check,
    `Commits wait for a synchronous standby that is not connected (${names}): nothing can be accepted or recorded.`,
    'Start the standby, or remove it from synchronous_standby_names and reload.',
  );
}

export function judgeVacuum({ settings }: ServerFacts): Finding {
  const check = 'Autovacuum';
  return settings.autovacuum === 'on' && settings.track_counts === 'on'
    ? ok(check, 'on')
    : problem(
        check,
        'Off: the queue changes all the time and would grow without bound.',
        'Set autovacuum = on and track_counts = on in postgresql.conf and reload.',
      );
}

const LIMIT_OF: Readonly<Record<ConnectionLimit['of'], { owner: string; todo: string }>> = {
  server: { owner: 'the server', todo: 'Raise max_connections' },
  database: { owner: 'the database', todo: 'Raise its limit (ALTER DATABASE … CONNECTION LIMIT)' },
  role: { owner: 'the role', todo: 'Raise its limit (ALTER ROLE … CONNECTION LIMIT)' },
};

/** Judges by the limit that leaves the fewest connections. */
export function judgeConnections(
  { connectionLimits }: ServerFacts,
  { processes, connections }: { processes: number; connections: number },
): Finding {
  const check = 'Connections';
  const wanted = connections;
  const room = ({ allowed, usedByOthers }: ConnectionLimit): number => allowed - usedByOthers;
  const tightest = connectionLimits.toSorted((a, b) => room(a) - room(b))[0]!;
  const free = room(tightest);
  const { owner, todo: raise } = LIMIT_OF[tightest.of];
  const node = `this node (${processes === 1 ? 'one process' : `${processes} processes`})`;
  const detail = `up to ${wanted} for ${node}; ${owner} allows ${tightest.allowed}, of which ${free} are free for Posthorn: ${nodesThatFit(free, wanted)}`;
  if (wanted <= free * 0.8) return ok(check, detail);
  const todo = `${raise}, or lower POSTHORN_DATABASE_POOL_SIZE or --processes.`;
  return wanted <= free
    ? warning(check, `${detail}, with few connections left.`, todo)
    : problem(check, `${detail}.`, todo);
}

/** The doctor knows the settings of its own node only, and supposes that the others have the same. */
function nodesThatFit(free: number, wanted: number): string {
  const nodes = Math.floor(free / wanted);
  if (nodes === 0) return 'not enough for one node';
  return `enough for ${nodes === 1 ? 'one such node' : `${nodes} such nodes`}`;
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
    'As the owner of the schema, run the GRANTs of docs/operate/roles.md, and again after each upgrade unless default privileges are set.',
  );
}

/** The database that a relay reads from. */
export function judgeSource({ settings, version }: ServerFacts, mode: 'poll' | 'cdc'): Finding {
  const check = 'Relay source';
  if (mode === 'cdc' && settings.wal_level !== 'logical')
    return problem(
      check,
      `wal_level is ${settings.wal_level}: the relay cannot follow its log.`,
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
        `${isOneSession ? 'Notifications do not arrive' : 'Locks of the session do not last'}: there seems to be a pooler in between, such as PgBouncer in transaction mode.`,
        'Set DATABASE_URL to PostgreSQL itself, or use the pooler in session mode.',
      );
}

/** The pooler of DATABASE_URL. The caller has checked that Posthorn can work with it. */
export function judgePooling(pooling: Pooling, hasDirectUrl: boolean): Finding {
  const check = 'Pooler';
  if (pooling === 'none') return ok(check, 'none between Posthorn and PostgreSQL');
  if (pooling === 'session') return ok(check, 'in session mode: each client keeps its own server connection');
  return ok(
    check,
    hasDirectUrl
      ? 'in transaction mode; leases, LISTEN and NOTIFY use POSTHORN_DIRECT_DATABASE_URL'
      : 'in transaction mode',
  );
}

const CLOCK_WARNING_MS = 1_000;
const CLOCK_PROBLEM_MS = 60_000;

/** Posthorn uses the clock of the database, so a difference alone does no harm; but one of the clocks is wrong. */
export function judgeClock(differenceMs: number): Finding {
  const check = 'Clock';
  const seconds = `${(Math.abs(differenceMs) / 1000).toFixed(1)} s`;
  const detail = `This machine is ${seconds} ${differenceMs > 0 ? 'ahead of' : 'behind'} the database`;
  const todo = 'Synchronize both with a time server (chrony, systemd-timesyncd).';
  const size = Math.abs(differenceMs);
  if (size < CLOCK_WARNING_MS) return ok(check, 'this machine and the database agree');
  if (size < CLOCK_PROBLEM_MS) return warning(check, `${detail}.`, todo);
  return problem(check, `${detail}: receivers refuse signatures with such a wrong time.`, todo);
}

/** `isOwner`: this role may apply migrations, so `serve` does it. */
export function judgeMigrations(
  applied: readonly string[] | null,
  known: readonly string[],
  isOwner: boolean,
): Finding {
  const check = 'Schema';
  const todo = 'Run `posthorn migrate`; `dev` and `serve` also do it when they start.';
  if (applied === null) return warning(check, 'This database has no Posthorn schema yet.', todo);
  if (applied.length > known.length)
    return problem(
      check,
      `The database is at ${applied.at(-1)}, which this Posthorn does not know.`,
      'Run the newer Posthorn that made it; going back is not supported.',
    );
  const missing = known.slice(applied.length);
  return missing.length === 0
    ? ok(check, `up to date (${applied.at(-1)})`)
    : (isOwner ? warning : problem)(
        check,
        `The schema is at ${applied.length === 0 ? 'no version yet' : `version ${applied.length} (${applied.at(-1)})`}; ` +
          `${missing.length} ${missing.length === 1 ? 'migration is' : 'migrations are'} missing, the next is ${missing[0]}.`,
        'Run `posthorn migrate` as the owner of the schema. If a migration fails, it says why.',
      );
}

export function judgeWorkers(
  { workers, unowned }: { workers: readonly WorkerFacts[]; unowned: number },
  { deadAfterMs, shouldRun }: { deadAfterMs: number; shouldRun: boolean },
): Finding {
  const check = 'Shards';
  const alive = workers.filter(({ silentMs }) => silentMs < deadAfterMs);
  const owners = alive.filter(({ shards }) => shards > 0);
  const owned = owners.reduce((sum, { shards }) => sum + shards, 0);
  if (alive.length === 0 && !shouldRun) return ok(check, 'no worker runs, because Posthorn is not running');
  if (alive.length === 0)
    return warning(
      check,
      workers.length === 0
        ? 'No worker runs.'
        : `No worker is alive; ${workers.length} stopped renewing their leases.`,
      'Start one (`posthorn serve`). Until then, accepted events wait.',
    );
  if (owned === 256)
    return ok(check, `all 256 owned, by ${owners.length === 1 ? 'one worker' : `${owners.length} workers`}`);
  return problem(
    check,
    `${256 - owned} of 256 have no live worker (${unowned} have no owner at all): nothing is sent to their endpoints.`,
    'Wait some seconds and check again. If it persists, look at the logs of the workers, or start another one (`posthorn serve --role worker`).',
  );
}

export function judgeRegions(regions: readonly RegionStatus[], shouldRun: boolean): Finding {
  const check = 'Regions';
  const used = regions.filter(({ isUsed }) => isUsed);
  if (used.length === 0) return ok(check, 'no endpoint names a region');
  const empty = used.filter(({ workers }) => workers === 0).map(({ name }) => name);
  if (empty.length === 0 || !shouldRun)
    return ok(check, `endpoints name ${used.map(({ name }) => name).join(', ')}`);
  return problem(
    check,
    `No worker runs in ${empty.join(', ')}, which endpoints name: nothing is sent to them, unless the default region stands in.`,
    `Start one (\`posthorn serve --role worker --region ${empty[0]}\`), or set POSTHORN_REGION_FALLBACK_AFTER_MS on the workers of the default region.`,
  );
}

const DAY_MS = 86_400_000;

export function judgePartitions(facts: readonly PartitionFacts[]): Finding {
  const check = 'Partitions';
  const todo = 'A running Posthorn creates them: look for "create partitions ahead of time" in its log.';
  const uncovered = facts.filter(({ coversNow }) => !coversNow).map(({ parent }) => parent);
  if (uncovered.length > 0)
    return problem(
      check,
      `${uncovered.join(', ')}: no partition covers the present time, so nothing can be stored.`,
      todo,
    );
  const gaps = facts.filter((each) => each.gaps > 0).map(({ parent }) => parent);
  if (gaps.length > 0) return warning(check, `${gaps.join(', ')}: there are gaps between partitions.`, todo);
  const days = Math.floor(Math.min(...facts.map(({ aheadMs }) => aheadMs)) / DAY_MS);
  return days < 1
    ? warning(check, 'The last partition ends within a day.', todo)
    : ok(check, `exist for the next ${days} ${days === 1 ? 'day' : 'days'}, without gaps`);
}
