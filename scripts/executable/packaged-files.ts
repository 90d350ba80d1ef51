/** Takes the place of src/config/packaged-files.ts in the single-file executable, which holds the files as assets. */
import { getAsset, getAssetKeys } from 'node:sea';
import type { PackagedFolder } from '../../src/config/packaged-files.ts';

export function readPackageJson(): unknown {
  return JSON.parse(getAsset('package.json', 'utf8'));
}

export async function readPackagedFolder(folder: PackagedFolder): Promise<Map<string, Buffer> | null> {
  const names = getAssetKeys().filter((name) => name.startsWith(`${folder}/`));
  if (names.length === 0) return null;
  return new Map(names.map((name) => [name.slice(folder.length + 1), Buffer.from(getAsset(name))]));
}
