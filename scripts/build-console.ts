/** Builds the console into dist/console: node scripts/build-console.ts [--if-needed] */
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { CONSOLE_OUTPUT, CONSOLE_SOURCES, consoleConfig } from './console-config.ts';

export async function buildConsole({ ifNeeded = false } = {}): Promise<void> {
  if (ifNeeded && !(await isConsoleOutdated())) return;
  // Loaded only for a build, because it takes a while.
  const { build } = await import('vite');
  const nodeEnv = process.env.NODE_ENV;
  // Under a test runner it is "test", which would select the development build of React.
  process.env.NODE_ENV = 'production';
  try {
    await build(await consoleConfig());
  } finally {
    if (nodeEnv === undefined) delete process.env.NODE_ENV;
    else process.env.NODE_ENV = nodeEnv;
  }
}

/** Returns true if there is no output, or a source file is newer than the output. */
export async function isConsoleOutdated(): Promise<boolean> {
  const output = await stat(path.join(CONSOLE_OUTPUT, 'index.html')).catch(() => null);
  if (output === null) return true;
  const inputs = [fileURLToPath(new URL('../package-lock.json', import.meta.url)), CONSOLE_SOURCES];
  for (const entry of await readdir(CONSOLE_SOURCES, { recursive: true, withFileTypes: true }))
    inputs.push(path.join(entry.parentPath, entry.name));
  const times = await Promise.all(inputs.map(async (file) => (await stat(file)).mtimeMs));
  return times.some((time) => time > output.mtimeMs);
}

if (import.meta.main) {
  const startedAt = performance.now();
  await buildConsole({ ifNeeded: process.argv.includes('--if-needed') });
  const durationMs = Math.round(performance.now() - startedAt);
  if (durationMs > 500) console.log(`console built in ${durationMs} ms`);
}
