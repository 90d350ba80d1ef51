import { chown, writeFile } from 'node:fs/promises';
import { totalmem } from 'node:os';
import path from 'node:path';
import type { Home } from './home.ts';
import type { RunAs } from './run-command.ts';

/** Inside the cluster, included by postgresql.conf, written anew at every start. */
export const SETTINGS_FILE = 'posthorn.conf';

type Settings = Record<string, string>;

/**
 * For durable throughput on a small machine that PostgreSQL shares with Posthorn. Whoever wants other values writes them
 * into postgresql.conf below the include, or uses ALTER SYSTEM.
 */
export function tunedSettings(memoryBytes = availableMemory()): Settings {
  return {
    // A 202 is a promise: what is committed is on disk. These are the defaults; they are here so that nobody wonders.
    fsync: 'on',
    full_page_writes: 'on',
    synchronous_commit: 'on',

    // An eighth of the memory: the hot queue table fits into 128 MB, and the rest is of more use as file cache.
    shared_buffers: megabytes(clamp(memoryBytes / 8, 128, 512)),
    huge_pages: 'try', // fewer page faults where the machine has some set aside
    work_mem: '8MB', // sorts of a few thousand rows; times up to 100 connections
    maintenance_work_mem: '64MB', // indexes of partitions, and autovacuum
    max_connections: '100', // several processes with pools of ten, and room for an operator's psql

    // The CDC outbox relay reads the log. Costs next to nothing while no slot exists (ADR 2 has the measurement).
    wal_level: 'logical',
    wal_buffers: '16MB', // one segment, so that a batch commit never waits for room; -1 gives less below 512 MB
    // Few checkpoints: after each one, every page that is touched goes into the log whole.
    max_wal_size: '2GB', // replaying that much after a crash takes some seconds
    min_wal_size: '256MB', // recycled segments are quicker than new ones
    checkpoint_timeout: '10min',
    checkpoint_completion_target: '0.9', // writing spread over the interval, so that fsync does not stall commits
    // These binaries have only pglz for it: half the log after a checkpoint, for 0.2 ms of processor per page (ADR 2).
    wal_compression: 'off',

    // The queue table is rewritten all day: look often, do not wait for 20 % dead rows, do not doze in between.
    autovacuum_naptime: '10s', // a snapshot that somebody holds makes each look one in vain, at the whole of the queue
    autovacuum_vacuum_scale_factor: '0.05',
    autovacuum_vacuum_cost_delay: '1ms',
    autovacuum_vacuum_cost_limit: '2000',
    autovacuum_analyze_scale_factor: '0.05',

    jit: 'off', // statements are short; compiling them costs more than it saves
    max_parallel_workers_per_gather: '0', // the cores belong to Posthorn; and it needs /dev/shm, tiny in containers
    random_page_cost: '1.1', // solid-state disks

    timezone: 'UTC',
    log_timezone: 'UTC',
    log_checkpoints: 'off', // the log is for what an operator has to see
    log_line_prefix: '%m [%p] ',
    client_connection_check_interval: '10s', // the long statement of a client that was killed ends, instead of going on
  };
}

/** Not for anybody to change in a file: who can reach the server, and by what we know it again as ours. */
export function fixedSettings(socketDirectory: string): Settings {
  return {
    cluster_name: CLUSTER_NAME,
    listen_addresses: '', // no network at all, only the Unix socket
    unix_socket_directories: quoteForList(socketDirectory),
    unix_socket_permissions: '0700',
    port: '5432', // part of the socket's name, no more than that
    logging_collector: 'off', // into the file that we gave it as stderr
    log_destination: 'stderr',
  };
}

export const CLUSTER_NAME = 'posthorn';

export async function writeSettings(home: Home, runAs: RunAs): Promise<void> {
  const lines = Object.entries(tunedSettings()).map(([name, value]) => `${name} = '${value}'`);
  const note =
    '# Written by Posthorn at every start. Your own settings belong into postgresql.conf, at its end.';
  const file = path.join(home.cluster, SETTINGS_FILE);
  await writeFile(file, `${[note, ...lines].join('\n')}\n`, { mode: 0o600 });
  if (runAs) await chown(file, runAs.uid, runAs.gid);
}

/** What the container may use, where there is such a limit. */
function availableMemory(): number {
  return Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
}

const MB = 1024 * 1024;
const clamp = (bytes: number, low: number, high: number) => Math.min(Math.max(bytes, low * MB), high * MB);
const megabytes = (bytes: number) => `${Math.floor(bytes / MB)}MB`;

/** The setting is a comma-separated list, so a path is one quoted element of it. */
const quoteForList = (value: string) => `"${value.replaceAll('"', '""')}"`;
