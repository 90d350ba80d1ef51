import { chown, writeFile } from 'node:fs/promises';
import { totalmem } from 'node:os';
import path from 'node:path';
import type { Home } from './home.ts';
import type { RunAs } from './run-command.ts';

/** In the directory of the cluster. postgresql.conf includes it; every start rewrites it. */
export const SETTINGS_FILE = 'posthorn.conf';

type Settings = Record<string, string>;

/**
 * For durable throughput on a small machine that PostgreSQL shares with Posthorn. To override them, users write into
 * postgresql.conf below the include, or use ALTER SYSTEM.
 */
export function tunedSettings(memoryBytes = availableMemory()): Settings {
  return {
    // A 202 promises that the event is on disk. These are PostgreSQL's defaults, repeated to be explicit.
    fsync: 'on',
    full_page_writes: 'on',
    synchronous_commit: 'on',

    // An eighth of the memory: the hot queue table fits into 128 MB, and the rest is of more use as file cache.
    shared_buffers: megabytes(clamp(memoryBytes / 8, 128, 512)),
    huge_pages: 'try', // fewer page faults if the machine reserves huge pages
    work_mem: '8MB', // enough to sort a few thousand rows; up to 100 connections may each use it
    maintenance_work_mem: '64MB', // for indexes of partitions and for autovacuum
    max_connections: '100', // enough for several processes and an operator's psql

    // The CDC outbox relay reads the log. Costs next to nothing while no slot exists (ADR 2 has the measurement).
    wal_level: 'logical',
    wal_buffers: '16MB', // one segment, so that a batch commit never waits for room; -1 gives less below 512 MB
    // Few checkpoints: after each one, the first change of a page writes the whole page to the log.
    max_wal_size: '2GB', // replaying that much after a crash takes some seconds
    min_wal_size: '256MB', // recycling segments is quicker than creating them
    checkpoint_timeout: '10min',
    checkpoint_completion_target: '0.9', // spreads the writes over the interval, so that fsync does not stall commits
    // These binaries support only pglz, which halves the log after a checkpoint but takes 0.2 ms of CPU per page (ADR
    // 2).
    wal_compression: 'off',

    // The queue table changes all the time: vacuum it often, before 20 % of its rows are dead, and with short pauses.
    autovacuum_naptime: '10s', // not shorter: while a session holds an old snapshot, each run scans the whole queue without effect
    autovacuum_vacuum_scale_factor: '0.05',
    autovacuum_vacuum_cost_delay: '1ms',
    autovacuum_vacuum_cost_limit: '2000',
    autovacuum_analyze_scale_factor: '0.05',

    jit: 'off', // statements are short; compiling them costs more than it saves
    max_parallel_workers_per_gather: '0', // leaves the cores to Posthorn; parallel queries also need /dev/shm, which is tiny in containers
    random_page_cost: '1.1', // solid-state disks

    timezone: 'UTC',
    log_timezone: 'UTC',
    log_checkpoints: 'off', // keeps the log to what an operator must see
    log_line_prefix: '%m [%p] ',
    client_connection_check_interval: '10s', // ends the long statement of a killed client
  };
}

/** Settings that no file can override: who can reach the server, and the name by which we recognize our server. */
export function fixedSettings(socketDirectory: string): Settings {
  return {
    cluster_name: CLUSTER_NAME,
    listen_addresses: '', // no network at all, only the Unix socket
    unix_socket_directories: quoteForList(socketDirectory),
    unix_socket_permissions: '0700',
    port: '5432', // only part of the socket's name
    logging_collector: 'off', // the server logs to stderr, which is our file
    log_destination: 'stderr',
  };
}

export const CLUSTER_NAME = 'posthorn';

export async function writeSettings(home: Home, runAs: RunAs): Promise<void> {
  const lines = Object.entries(tunedSettings()).map(([name, value]) => `${name} = '${value}'`);
  const note = '# Written by Posthorn at every start. Put your own settings at the end of postgresql.conf.';
  const file = path.join(home.cluster, SETTINGS_FILE);
  await writeFile(file, `${[note, ...lines].join('\n')}\n`, { mode: 0o600 });
  if (runAs) await chown(file, runAs.uid, runAs.gid);
}

/** The memory of the machine, or the limit of the container if there is one. */
function availableMemory(): number {
  return Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
}

const MB = 1024 * 1024;
const clamp = (bytes: number, low: number, high: number) => Math.min(Math.max(bytes, low * MB), high * MB);
const megabytes = (bytes: number) => `${Math.floor(bytes / MB)}MB`;

/** The setting is a comma-separated list, so a path is one quoted element of it. */
const quoteForList = (value: string) => `"${value.replaceAll('"', '""')}"`;
