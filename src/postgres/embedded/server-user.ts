import { lchown, lstat, readdir } from 'node:fs/promises';
import path from 'node:path';
import { EmbeddedPostgresError, OWN_SERVER_HINT } from './errors.ts';
import { type RunAs, runCommand } from './run-command.ts';

/** PostgreSQL refuses to run as root, so root needs someone to run it as. */
export function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/**
 * Who runs the server. A cluster that exists is run by its owner: one made by an ordinary user stays usable for that
 * user after root has started it once.
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

/** Finds the `postgres` user of this machine, and creates one if there is none. Only for root. */
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
  const said: string[] = [];
  for (const [program, args] of attempts) {
    const result = await runCommand(program, args);
    const created = await lookUp(name);
    if (created) return created;
    said.push(`${program}: ${result.output.trim()}`);
  }
  throw new EmbeddedPostgresError(
    'no_permission',
    `PostgreSQL does not run as root, there is no user "${name}", and it could not be created (${said.join('; ')}).`,
    `Start Posthorn as an ordinary user, or create the user "${name}". ${OWN_SERVER_HINT}`,
  );
}

/** Asks the kernel, by trying as that user: it knows of every ancestor's mode, of ACLs, and of mounts. */
export async function canEnter(runAs: RunAs, directory: string): Promise<boolean> {
  return (await runCommand('/bin/sh', ['-c', 'test -x "$1"', 'sh', directory], { runAs })).ok;
}

async function lookUp(name: string): Promise<RunAs> {
  const [uid, gid] = await Promise.all([runCommand('id', ['-u', name]), runCommand('id', ['-g', name])]);
  if (!uid.ok || !gid.ok || Number(uid.output) === 0) return undefined;
  return { uid: Number(uid.output), gid: Number(gid.output) };
}

/** A cluster that root has copied or restored belongs to root, and PostgreSQL's user could not open it. */
export async function giveClusterTo(runAs: RunAs, cluster: string): Promise<void> {
  if (!runAs) return;
  if (!(await canEnter(runAs, path.dirname(cluster)))) {
    throw new EmbeddedPostgresError(
      'no_permission',
      `The user who runs PostgreSQL (uid ${runAs.uid}) cannot enter ${path.dirname(cluster)}, where the database is.`,
      'Move the data directory to where that user can go, and name it; or make the directories above it passable (chmod o+x).',
    );
  }
  if ((await lstat(cluster)).uid !== 0) return;
  for (const entry of await readdir(cluster, { recursive: true, withFileTypes: true })) {
    await lchown(path.join(entry.parentPath, entry.name), runAs.uid, runAs.gid);
  }
  await lchown(cluster, runAs.uid, runAs.gid); // last, because it is the mark that all of it is done
}
