/** Reads the options of `posthorn capacity`. */
import { UsageError } from '../usage-error.ts';
import { DEFAULT_DEMAND, type Demand } from './model.ts';

interface Reader {
  readonly key: keyof Demand;
  /** Units and their factors. The empty unit is the default. */
  readonly units: Readonly<Record<string, number>>;
  readonly min: number;
  readonly max: number;
  readonly example: string;
}

const PLAIN = { '': 1 };

const READERS: Readonly<Record<string, Reader>> = {
  'events-per-day': { key: 'eventsPerDay', units: PLAIN, min: 1, max: 1e12, example: '1e9' },
  'peak-factor': { key: 'peakFactor', units: PLAIN, min: 1, max: 1_000, example: '3' },
  'fan-out': { key: 'fanOut', units: PLAIN, min: 0, max: 100_000, example: '1.2' },
  payload: {
    key: 'payloadBytes',
    units: { '': 1, B: 1, kB: 1_000, KiB: 1_024, MB: 1e6 },
    min: 0,
    max: 1e7,
    example: '1kB',
  },
  'p50-receiver': { key: 'receiverMs', units: { ms: 1, s: 1_000 }, min: 0, max: 30_000, example: '200ms' },
  failures: { key: 'failures', units: { '%': 0.01, '': 1 }, min: 0, max: 0.95, example: '2%' },
  endpoints: { key: 'endpoints', units: PLAIN, min: 1, max: 1e8, example: '1000' },
  'keep-days': { key: 'keepDays', units: PLAIN, min: 0, max: 10_000, example: '90' },
  'cores-per-node': { key: 'coresPerNode', units: PLAIN, min: 1, max: 1_024, example: '8' },
};

/** Throws a `UsageError` that names the option, its value and what is allowed. */
export function readDemand(options: Readonly<Record<string, string>>): Demand {
  const demand: Record<string, number> = { ...DEFAULT_DEMAND };
  for (const [name, reader] of Object.entries(READERS)) {
    const text = options[name];
    if (text !== undefined) demand[reader.key] = readValue(name, text, reader);
  }
  return demand as unknown as Demand;
}

function readValue(name: string, text: string, { units, min, max, example }: Reader): number {
  const [, digits, unit] = /^([\d.]+(?:e\d+)?)\s*(\D*)$/i.exec(text.trim()) ?? [];
  const factor = unit === undefined ? undefined : units[unit];
  const value = Number(digits) * (factor ?? Number.NaN);
  if (Number.isNaN(value) || value < min || value > max)
    throw new UsageError(
      `--${name}: ${JSON.stringify(text)} is not allowed. Give a number from ${min} to ${max}, such as ${example}.`,
    );
  return value;
}
