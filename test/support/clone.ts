/** A clean copy of the checkout, and an environment for commands in it that contains nothing of this checkout. */
import { execFileSync } from 'node:child_process';
import { cp } from 'node:fs/promises';
import path from 'node:path';
import { ROOT } from './doc-blocks.ts';

/** Copies every file that git knows or would add, except those for which `isIgnored` returns true. */
export async function copyCheckout(
  target: string,
  isIgnored: (file: string) => boolean = () => false,
): Promise<void> {
  const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  for (const file of files.split('\0').filter((each) => each !== '' && !isIgnored(each)))
    await cp(path.join(ROOT, file), path.join(target, file)).catch((error: NodeJS.ErrnoException) => {
      // A file that was deleted, but not yet committed.
      if (error.code !== 'ENOENT') throw error;
    });
}

const readNpmSetting = (name: string): string =>
  execFileSync('npm', ['config', 'get', name], { encoding: 'utf8' }).trim();

/** Contains neither the programs of this checkout nor its npm settings. npm uses its cache as far as possible. */
export function cleanEnvironment(home: string, node = ''): Record<string, string> {
  const folders = (process.env.PATH ?? '')
    .split(path.delimiter)
    .filter((folder) => !folder.includes('node_modules'));
  const certificates = process.env.NODE_EXTRA_CA_CERTS;
  return {
    ...(certificates !== undefined && { NODE_EXTRA_CA_CERTS: certificates }),
    PATH: [...(node === '' ? [] : [node]), ...folders].join(path.delimiter),
    HOME: home,
    npm_config_cache: readNpmSetting('cache'),
    // The user's settings say how this machine reaches the registry.
    npm_config_userconfig: readNpmSetting('userconfig'),
    npm_config_prefer_offline: 'true',
    npm_config_update_notifier: 'false',
  };
}
