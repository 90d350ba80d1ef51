import { lchown, lstat, readdir } from 'node:fs/promises';
import path from 'node:path';
import { EmbeddedPostgresError, OWN_SERVER_HINT } from './errors.ts';
import { type RunAs, runCommand } from './run-command.ts';

/** PostgreSQL refuses to run as root, so root must run it as another user. */
export function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/**
 * Returns the user that runs the server. An existing cluster is run by its owner, so that it stays usable for an
 * ordinary user after root has started it once.
 */
export async function chooseServerUser(cluster: string): Promise<RunAs> {
  const owner = await lstat(cluster).catch(() => undefined);
  if (!isRoot()) {
    if (owner && owner.uid !== process.getuid?.()) {
      throw new EmbeddedPostgresError(
        'no_permission',
        `The database in ${cluster} belongs to another user (uid ${owner.uid}).`,
        `Start Posthorn as that user or as root, or name another data directory. ${OWN_SERVER_HINT}`,
      );
    }
    return undefined;
  }
  if (owner && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  return ensureServerUser();
}

/** Finds the `postgres` user of this machine, and creates it if there is none. Needs root. */
export async function ensureServerUser(name = 'postgres'): Promise<NonNullable<RunAs>> {
  const found = (await lookUp(name)) ?? (await lookUp(`_${name}`)); // macOS has a `_postgres`
  if (found) return found;
  const noLogin = '/usr/sbin/nologin';
  const attempts: [string, string[]][] = [
    [
      'useradd',
      ['--system', '--user-group', '--no-create-home', '--home-dir', '/', '--shell', noLogin, name],
    ],
    ['adduser', ['-S', '-D', '-H', '-h', '/', '-s', '/sbin/nologin', name]], // busybox
  ];
  const failures: string[] = [];
  for (const [program, args] of attempts) {
    const result = await runCommand(program, args);
    const created = await lookUp(name);
    if (created) return created;
    failures.push(`${program}: ${result.output.trim()}`);
  }
  throw new EmbeddedPostgresError(
    'no_permission',
    `PostgreSQL does not run as root, there is no user "${name}", and it could not be created (${failures.join('; ')}).`,
    `Start Posthorn as an ordinary user, or create the user "${name}". ${OWN_SERVER_HINT}`,
  );
}

/** Tries it as that user: only the kernel knows all modes, ACLs and mounts on the path. */
export async function canEnter(runAs: RunAs, directory: string): Promise<boolean> {
  return (await runCommand('/bin/sh', ['-c', 'test -x "$1"', 'sh', directory], { runAs })).ok;
}

async function lookUp(name: string): Promise<RunAs> {
  const [uid, gid] = await Promise.all([runCommand('id', ['-u', name]), runCommand('id', ['-g', name])]);
  if (!uid.ok || !gid.ok || Number(uid.output) === 0) return undefined;
  return { uid: Number(uid.output), gid: Number(gid.output) };
}

/** Changes the owner of a cluster that root has copied or restored, so that PostgreSQL's user can open it. */
export async function giveClusterTo(runAs: RunAs, cluster: string): Promise<void> {
  if (!runAs) return;
  if (!(await canEnter(runAs, path.dirname(cluster)))) {
    throw new EmbeddedPostgresError(
      'no_permission',
      `The user who runs PostgreSQL (uid ${runAs.uid}) cannot enter ${path.dirname(cluster)}, where the database is.`,
      'Move the data directory to a place that this user can enter (POSTHORN_DATA_DIR names it), or let this user pass through the directories above it (chmod o+x).',
    );
  }
  if ((await lstat(cluster)).uid !== 0) return;
  for (const entry of await readdir(cluster, { recursive: true, withFileTypes: true })) {
    await lchown(path.join(entry.parentPath, entry.name), runAs.uid, runAs.gid);
  }
  await lchown(cluster, runAs.uid, runAs.gid); // last, because this owner marks the change as complete
}
