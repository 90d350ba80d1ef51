/**
 * The Chromium of the npm package `@sparticuz/chromium`, for machines without a browser. The package carries the browser,
 * the shared libraries that a bare Linux lacks and a font, all compressed. They are unpacked once for a checkout.
 */
import { execFile } from 'node:child_process';
import { access, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Chromium } from './find-chromium.ts';

const PACKAGE = '@sparticuz/chromium';
const CACHE = fileURLToPath(new URL('../node_modules/.cache/chromium/', import.meta.url));

/** Unpacks the browser if that has not been done yet. Null: the package has none for this platform. Throws if it cannot unpack. */
export async function unpackBundledChromium(): Promise<Chromium | null> {
  if (process.platform !== 'linux' || process.arch !== 'x64') return null;
  const home = path.join(CACHE, await packageVersion());
  if (!(await exists(home))) await unpackInto(home);
  return {
    executablePath: path.join(home, 'chromium'),
    env: {
      LD_LIBRARY_PATH: path.join(home, 'al2023', 'lib'),
      FONTCONFIG_FILE: path.join(home, 'fonts.conf'),
    },
  };
}

async function packageVersion(): Promise<string> {
  const main = createRequire(import.meta.url).resolve(PACKAGE);
  const file = path.join(path.dirname(main), '../package.json');
  return (JSON.parse(await readFile(file, 'utf8')) as { version: string }).version;
}

/** Unpacks into another directory and renames it when it is complete, so an interrupted run leaves no incomplete browser. */
async function unpackInto(home: string): Promise<void> {
  await mkdir(CACHE, { recursive: true });
  const unfinished = await mkdtemp(path.join(CACHE, 'unpacking-'));
  try {
    // The package unpacks to the temporary directory. It unpacks its libraries only if the environment looks like AWS Lambda.
    const script = `import chromium from '${PACKAGE}'; await chromium.executablePath();`;
    await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
      cwd: fileURLToPath(new URL('..', import.meta.url)),
      env: { TMPDIR: unfinished, AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs24.x' },
    });
    await writeFile(path.join(unfinished, 'fonts.conf'), FONTS);
    await rename(unfinished, home).catch(async (error: unknown) => {
      if (!(await exists(home))) throw error; // another run was quicker
    });
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
}

/**
 * Replaces the package's own file, which names directories of AWS Lambda. The directory is relative to the file, so that a
 * copy of the checkout works: Chromium crashes if it finds no font.
 */
const FONTS = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir prefix="relative">fonts</dir>
</fontconfig>
`;

const exists = (file: string): Promise<boolean> =>
  access(file).then(
    () => true,
    () => false,
  );
