/**
 * Files that belong to the program and are not code: package.json, the migrations, the built console and guide. They are
 * beside the code. The single-file executable contains them, and scripts/executable/packaged-files.ts replaces this module
 * there.
 */
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** Console and guide are beside the compiled program, or in `dist` when Posthorn runs from its sources. */
const FOLDERS = {
  migrations: ['../postgres/migrations'],
  console: ['../console', '../../dist/console'],
  guide: ['../guide', '../../dist/guide'],
} as const;
export type PackagedFolder = keyof typeof FOLDERS;

/** package.json is two levels above src/config and above dist/config. */
export function readPackageJson(): unknown {
  return createRequire(import.meta.url)('../../package.json');
}

/** Name and content of each file, with `/` between the parts of a name. Null if the folder does not exist or is empty. */
export async function readPackagedFolder(folder: PackagedFolder): Promise<Map<string, Buffer> | null> {
  const directory = FOLDERS[folder]
    .map((place) => fileURLToPath(new URL(place, import.meta.url)))
    .find(existsSync);
  return directory === undefined ? null : readFolder(directory);
}

async function readFolder(directory: string): Promise<Map<string, Buffer> | null> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));
  const read = files.map(
    async (file): Promise<[string, Buffer]> => [
      path.relative(directory, file).replaceAll(path.sep, '/'),
      await readFile(file),
    ],
  );
  return files.length === 0 ? null : new Map(await Promise.all(read));
}
