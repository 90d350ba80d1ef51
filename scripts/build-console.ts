/** Builds the console into dist/console: node scripts/build-console.ts [--if-needed] */
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { CONSOLE_OUTPUT, CONSOLE_SOURCES, consoleConfig } from './console-config.ts';

export async function buildConsole({ ifNeeded = false } = {}): Promise<void> {
  if (ifNeeded && !(await isConsoleOutdated())) return;
  // Loaded only now: a start that needs no build should not wait for a bundler.
  const { build } = await import('vite');
  const before = process.env.NODE_ENV;
  // A test run sets it to something else, and would get the development build of React.
  process.env.NODE_ENV = 'production';
  try {
    await build(await consoleConfig());
  } finally {
    if (before === undefined) delete process.env.NODE_ENV;
    else process.env.NODE_ENV = before;
  }
}

/** True if there is no built console, or a source of it is newer. Reads some hundred file times. */
export async function isConsoleOutdated(): Promise<boolean> {
  const built = await stat(path.join(CONSOLE_OUTPUT, 'index.html')).catch(() => null);
  if (built === null) return true;
  const inputs = [fileURLToPath(new URL('../package-lock.json', import.meta.url)), CONSOLE_SOURCES];
  for (const entry of await readdir(CONSOLE_SOURCES, { recursive: true, withFileTypes: true }))
    inputs.push(path.join(entry.parentPath, entry.name));
  const times = await Promise.all(inputs.map(async (file) => (await stat(file)).mtimeMs));
  return times.some((time) => time > built.mtimeMs);
}

if (import.meta.main) {
  const started = performance.now();
  await buildConsole({ ifNeeded: process.argv.includes('--if-needed') });
  const tookMs = Math.round(performance.now() - started);
  if (tookMs > 500) console.log(`console built in ${tookMs} ms`);
}
