/** Prints a prediction for people. */
import type { Demand, Prediction } from './model.ts';
import type { UnitCosts } from './unit-costs.ts';

const number = (value: number): string =>
  value.toLocaleString('en', { maximumFractionDigits: value < 10 ? 1 : 0 });

export function showBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
  let [value, unit] = [bytes, 0];
  for (; value >= 1_000 && unit < units.length - 1; unit += 1) value /= 1_000;
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

export function describePrediction(demand: Demand, prediction: Prediction, costs: UnitCosts): string {
  const { mean, peak, cores, processes } = prediction;
  const first = prediction.limits[0]!;
  const rows: [string, string][] = [
    ['events per second', `${number(mean.events)} on average, ${number(peak.events)} at the peak`],
    [
      'requests per second',
      `${number(mean.deliveries + mean.retries)} on average, ${number(peak.deliveries + peak.retries)} at the peak`,
    ],
    [
      'nodes',
      `${prediction.nodes} of ${demand.coresPerNode} cores and ${number(prediction.memoryPerNodeMb / 1_024)} GiB`,
    ],
    ['processes', `${processes.api} that accept, ${processes.worker} that deliver`],
    [
      'busy cores of Posthorn',
      `${number(cores.api)} to accept, ${number(cores.worker)} to deliver, at the peak`,
    ],
    [
      'PostgreSQL',
      `${prediction.postgresCores} cores (${number(cores.postgres)} busy), ${number(prediction.connections)} connections`,
    ],
    [
      'write-ahead log',
      `${showBytes(prediction.walBytesPerSecond)} per second at the peak, ${showBytes(prediction.walBytesPerDay)} per day`,
    ],
    [
      'disk',
      `${showBytes(prediction.diskBytesPerDay)} per day, ${showBytes(prediction.diskBytes)} for ${demand.keepDays} days`,
    ],
    ['sockets to receivers', number(prediction.sockets)],
    [
      'first bottleneck',
      `${first.name}: ${Math.round(first.use * 100)} % of what one deployment can have; ${first.advice}`,
    ],
    [
      'deployments',
      prediction.deployments === 1
        ? '1: one PostgreSQL is enough'
        : `${prediction.deployments}, each with a PostgreSQL and a part of the tenants; the figures above are for all of them together`,
    ],
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  const lines = rows.map(([name, text]) => `  ${name.padEnd(width)}  ${text}`);
  return `${lines.join('\n')}\n\nCosts measured on ${costs.measuredOn}. docs/capacity.md explains the model; \`npm run capacity\` measures your machine.`;
}
