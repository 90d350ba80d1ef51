import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import type { ConverterPoolOptions, PoolAnswer } from '../../src/convert/converter-pool.ts';
import { loadConverters, type RunningConverters } from '../../src/convert/load-converters.ts';
import { systemClock } from '../../src/domain/clock.ts';
import { readStep } from '../../src/domain/version-pins.ts';

/** Writes files into a folder of their own, and returns the path of the first. */
export function writeConfig(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'posthorn-config-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, name), text);
  return path.join(folder, Object.keys(files)[0]!);
}

export async function openConverters(
  file: string,
  options: Partial<ConverterPoolOptions> = {},
): Promise<RunningConverters> {
  const running = await loadConverters(file, {
    clock: systemClock,
    processes: 2,
    timeoutMs: 1_000,
    memoryBytes: 64 * 1024 * 1024,
    maxResultBytes: 256 * 1024,
    onProblem: () => {},
    ...options,
  });
  onTestFinished(() => running.pool.close());
  return running;
}

export function convert(
  { pool }: RunningConverters,
  type: string,
  steps: string,
  data: unknown,
  tenant = 'acme',
): Promise<PoolAnswer> {
  const path = steps.split(' ').map((step) => readStep(step)!);
  const bytes = Buffer.from(typeof data === 'string' ? data : JSON.stringify(data));
  return new Promise((resolve) => pool.convert({ tenant, type, path, data: bytes }, resolve));
}

export const textOf = (answer: PoolAnswer): string =>
  answer.kind === 'converted' ? answer.data.toString() : answer.kind === 'failed' ? answer.message : 'busy';
