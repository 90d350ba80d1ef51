/** The pictures of docs/lab.md, by the name of their file in docs/images. */

import type { LabResults } from './experiments.ts';
import { classNames } from './fault-models.ts';
import { peers } from './policies.ts';
import { dotChart, type Series, xyChart } from './svg.ts';
import { overall } from './tables.ts';
import { waitLimits } from './tally.ts';

const OURS = { default: 'Posthorn', 'with replays': 'Posthorn, with replays' } as const;

function finalSuccess({ sample }: LabResults): string {
  const rows = [...Object.entries(OURS), ...peers.map(({ id }) => [id, id] as const)].map(([id, label]) => ({
    label,
    values: classNames.map((name) => sample.get(id)!.classes[name].final),
  }));
  return dotChart('Deliveries that succeed in the end, by class of endpoint', classNames, rows, 0.3);
}

const SHARES = [0.6, 0.7, 0.8, 0.9, 1].map((at) => ({ at, label: `${Math.round(at * 100)} %` }));

function timeToDelivery({ sample }: LabResults): string {
  const shown = [
    ['default', 'Posthorn'],
    ...['reference', 'Svix', 'Stripe', 'Outpost', 'Convoy'].map((id) => [id, id]),
  ];
  const series = shown.map(
    ([id, name]): Series => ({
      name: name!,
      points: waitLimits.map((limit, index) => [
        limit,
        sample.get(id!)!.classes.intermittent.withinSeconds[index]!,
      ]),
    }),
  );
  const ticks = [
    [1, '1 s'],
    [15, '15 s'],
    [60, '1 min'],
    [600, '10 min'],
    [3_600, '1 h'],
    [21_600, '6 h'],
    [86_400, '1 day'],
    [345_600, '4 days'],
  ] as const;
  return xyChart(
    'Intermittent endpoints: share of all deliveries that arrived within a time',
    {
      x: {
        label: 'since acceptance',
        ticks: ticks.map(([at, label]) => ({ at, label })),
        isLogarithmic: true,
      },
      y: { label: 'delivered', ticks: SHARES },
    },
    series,
    'lines',
  );
}

function cost({ sample }: LabResults): string {
  const shown = [...Object.keys(OURS), 'default, no breaker', ...peers.map(({ id }) => id)];
  const series = shown.map((id): Series => {
    const result = sample.get(id)!;
    const name = id in OURS ? OURS[id as keyof typeof OURS] : id;
    const requestsPerDelivery = overall(result, (each) => each.requestsPerDelivery);
    return { name, points: [[requestsPerDelivery, overall(result, ({ final }) => final)]] };
  });
  const xs = [1, 1.2, 1.4, 1.6, 1.8, 2, 2.2].map((at) => ({ at, label: at.toFixed(1) }));
  const ys = [0.86, 0.88, 0.9, 0.92, 0.94, 0.96, 0.98, 1].map((at) => ({
    at,
    label: `${Math.round(at * 100)} %`,
  }));
  return xyChart(
    'What success costs: all classes together',
    { x: { label: 'requests per delivery', ticks: xs }, y: { label: 'succeeds in the end', ticks: ys } },
    series,
    'dots',
  );
}

function recovery({ recovery: results, plan }: LabResults): string {
  const shown = results.filter(({ jitter }) => jitter === 'none' || jitter === 'proportional');
  const minutes = plan.busy.minutes / 2;
  const series = shown.map(
    ({ jitter, breaker, result }): Series => ({
      name: `${jitter === 'none' ? 'no' : jitter} jitter, ${breaker === 'none' ? 'no breaker' : 'breaker'}`,
      points: Array.from({ length: Math.floor(result.recovery.length / 10) }, (_, index) => [
        (index * 10) / 60,
        Math.max(...result.recovery.slice(index * 10, index * 10 + 10)),
      ]),
    }),
  );
  const highest = Math.max(...series.flatMap(({ points }) => points.map(([, y]) => y)));
  const step = Math.max(1, Math.ceil(highest / 5));
  return xyChart(
    'After an outage of a quarter of an hour: requests in the busiest second of ten',
    {
      x: {
        label: 'minutes since the end of the outage',
        ticks: [0, 0.2, 0.4, 0.6, 0.8, 1].map((share) => ({
          at: share * minutes,
          label: `${share * minutes}`,
        })),
      },
      y: {
        label: 'requests per second',
        ticks: Array.from({ length: 6 }, (_, index) => ({ at: index * step, label: String(index * step) })),
      },
    },
    series,
    'lines',
  );
}

export const plots: Readonly<Record<string, (results: LabResults) => string>> = {
  'lab-final-success.svg': finalSuccess,
  'lab-time-to-delivery.svg': timeToDelivery,
  'lab-cost.svg': cost,
  'lab-recovery.svg': recovery,
};
