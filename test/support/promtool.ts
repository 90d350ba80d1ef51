/** Runs promtool, which checks metrics and rules: from the PATH, or from where scripts/fetch-promtool.sh puts it. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const FETCHED = fileURLToPath(
  new URL('../../node_modules/.cache/prometheus/usr/bin/promtool', import.meta.url),
);

function find(): string | null {
  const places = (process.env.PATH ?? '')
    .split(path.delimiter)
    .map((folder) => path.join(folder, 'promtool'));
  return [FETCHED, ...places].find((place) => existsSync(place)) ?? null;
}

const promtool = find();

/** For `needs`. */
export const PROMTOOL_MISSING =
  promtool === null ? 'promtool is not installed (scripts/fetch-promtool.sh brings it)' : null;

/** Runs promtool. Resolves with its output and whether it succeeded. */
export function runPromtool(
  args: readonly string[],
  { cwd, input = '' }: { cwd?: string; input?: string } = {},
): Promise<{ ok: boolean; output: string }> {
  return new Promise((resolve) => {
    const child = execFile(promtool!, args, { cwd, timeout: 60_000 }, (error, stdout, stderr) =>
      resolve({ ok: error === null, output: `${stdout}${stderr}` }),
    );
    child.stdin?.end(input);
  });
}
