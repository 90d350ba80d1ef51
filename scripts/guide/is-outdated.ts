import { stat } from 'node:fs/promises';
import path from 'node:path';
import { ROOT, readContents } from './contents.ts';

/** Next to the compiled program, because the published package has no other folder. */
export const GUIDE_OUTPUT = path.join(ROOT, 'dist/guide');

/** Returns true if there is no output, or a page or this script is newer than the output. */
export async function isGuideOutdated(): Promise<boolean> {
  const output = await stat(path.join(GUIDE_OUTPUT, 'index.html')).catch(() => null);
  if (output === null) return true;
  const pages = (await readContents()).flatMap((chapter) => chapter.files);
  const inputs = [
    ...pages,
    'docs',
    'package-lock.json',
    'scripts/build-guide.ts',
    'scripts/guide/render-page.ts',
  ];
  const times = await Promise.all(inputs.map(async (file) => (await stat(path.join(ROOT, file))).mtimeMs));
  return times.some((time) => time > output.mtimeMs);
}
