/** The tables of docs/lab.md, by the name of their place in the document. */

import { DEFAULT_BREAKER } from '../src/domain/breaker.ts';
import { checkedPolicies, type LabResults } from './experiments.ts';
import { classModels, classNames } from './fault-models.ts';
import { breakerNames } from './plan.ts';
import { peers, policies } from './policies.ts';
import type { ClassResult, TrialResult } from './tally.ts';

type Cell = string | number;

function table(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const lines = [head, head.map((_, column) => (column === 0 ? '---' : '---:')), ...rows];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

export const percent = (share: number, digits = 1): string => `${(share * 100).toFixed(digits)} %`;

/** Seconds in the unit that people use. */
export function duration(seconds: number): string {
  if (seconds < 90) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

const count = (value: number): string => Math.round(value).toLocaleString('en');

const totalDeliveries = ({ classes }: TrialResult): number =>
  classNames.reduce((sum, name) => sum + classes[name].deliveries, 0);

/** Over all deliveries of all classes. */
export function overall({ classes }: TrialResult, value: (result: ClassResult) => number): number {
  const all = classNames.map((name) => classes[name]);
  const deliveries = all.reduce((sum, each) => sum + each.deliveries, 0);
  return all.reduce((sum, each) => sum + value(each) * each.deliveries, 0) / deliveries;
}

const finals = ({ classes }: TrialResult): string[] => classNames.map((name) => percent(classes[name].final));
const disabled = ({ classes }: TrialResult): number =>
  classNames.reduce((sum, name) => sum + classes[name].disabled, 0);
const requests = (result: TrialResult): string =>
  overall(result, ({ requestsPerDelivery }) => requestsPerDelivery).toFixed(2);

function summaryRow(name: string, result: TrialResult): Cell[] {
  const { unreliable, intermittent } = result.classes;
  return [
    name,
    ...finals(result),
    duration(intermittent.p99),
    duration(unreliable.p50),
    requests(result),
    unreliable.requestsPerDelivery.toFixed(2),
    disabled(result),
  ];
}
const SUMMARY_HEAD = [
  'policy',
  'stable',
  'intermittent',
  'unreliable',
  'p99, intermittent',
  'p50, unreliable',
  'requests per delivery',
  '… unreliable',
  'disabled',
];

function calibration({ sample, everything }: LabResults): string {
  const engine = sample.get('reference')!;
  const loop = everything.get('reference')!;
  return table(
    [
      'class',
      'endpoints',
      'first attempt: reference',
      'lab',
      'final: reference',
      'lab, engine',
      'lab, plain loop',
    ],
    classNames.map((name) => {
      const { endpoints, reference } = classModels[name];
      const { deliveries, delivered, firstAttempt } = loop[name];
      return [
        name,
        endpoints,
        percent(reference.firstAttempt),
        percent(firstAttempt / deliveries),
        percent(reference.final),
        percent(engine.classes[name].final),
        percent(delivered / deliveries),
      ];
    }),
  );
}

function classes({ sample }: LabResults): string {
  const [ours, replayed] = [sample.get('default')!, sample.get('with replays')!];
  return table(
    [
      'class',
      'final: reference',
      'Posthorn',
      'with replays',
      'dead',
      'skipped',
      'p50',
      'p99',
      'requests per delivery',
      'disabled',
    ],
    classNames.map((name) => {
      const result = ours.classes[name];
      return [
        name,
        percent(classModels[name].reference.final),
        `**${percent(result.final)}**`,
        percent(replayed.classes[name].final),
        percent(result.dead, 2),
        percent(result.skipped, 2),
        duration(result.p50),
        duration(result.p99),
        result.requestsPerDelivery.toFixed(2),
        result.disabled,
      ];
    }),
  );
}

function ownPolicies({ sample }: LabResults): string {
  const peerIds = new Set(peers.map(({ id }) => id));
  const own = policies.filter(({ id }) => !peerIds.has(id));
  return table(
    SUMMARY_HEAD,
    own.map(({ id }) => summaryRow(id, sample.get(id)!)),
  );
}

function peerPolicies({ sample }: LabResults): string {
  const rows = [
    summaryRow('**Posthorn, default**', sample.get('default')!),
    summaryRow('**Posthorn, with replays**', sample.get('with replays')!),
    ...peers.map(({ id }) => summaryRow(id, sample.get(id)!)),
  ];
  return `${table(SUMMARY_HEAD, rows)}\n\n${peers.map(({ id, source }) => `- ${id}: ${source}`).join('\n')}`;
}

function fullRate({ fullRate: results }: LabResults): string {
  const without = results.get('none')!;
  const rows = table(
    [...SUMMARY_HEAD.slice(0, -1), 'requests saved', '… unreliable'].map((cell, column) =>
      column === 0 ? 'breaker' : cell,
    ),
    breakerNames.map((name) => {
      const result = results.get(name)!;
      const saved = (of: (result: TrialResult) => number): string => percent(1 - of(result) / of(without));
      return [
        ...summaryRow(name, result).slice(0, -1),
        saved((each) => overall(each, ({ requestsPerDelivery }) => requestsPerDelivery)),
        saved(({ classes: { unreliable } }) => unreliable.requestsPerDelivery),
      ];
    }),
  );
  return `In these runs no endpoint is disabled, so that only the breaker differs.\n\n${rows}`;
}

function busy({ busy: results }: LabResults): string {
  const requestsWithout = new Map(
    results
      .filter(({ breaker }) => breaker === 'none')
      .map(({ failing, result }) => [failing, result.requests]),
  );
  return table(
    ['failing', 'breaker', 'delivered in time', 'p50', 'p99', 'requests saved', 'opened', 'time open'],
    results.map(({ failing, breaker, result }) => [
      typeof failing === 'number' ? percent(failing, 0) : failing,
      breaker,
      percent(result.throughput),
      duration(result.p50),
      duration(result.p99),
      percent(1 - result.requests / requestsWithout.get(failing)!),
      result.opened,
      percent(result.openShare),
    ]),
  );
}

function recovery({ recovery: results }: LabResults): string {
  return table(
    ['jitter', 'breaker', 'busiest second', 'mean', 'busiest over mean'],
    results.map(({ jitter, breaker, result }) => {
      const busiest = Math.max(...result.recovery);
      const mean = result.recovery.reduce((sum, each) => sum + each, 0) / result.recovery.length;
      return [jitter, breaker, `${busiest}/s`, `${mean.toFixed(1)}/s`, (busiest / mean).toFixed(1)];
    }),
  );
}

function scaleCheck({ sample, larger, everything }: LabResults): string {
  const rows = checkedPolicies.flatMap((policy) => {
    const [small, large] = [sample.get(policy)!, larger.get(policy)!];
    const loop = everything.get(policy);
    return [
      [`${policy}: sample`, count(totalDeliveries(small)), ...finals(small), requests(small)],
      [`${policy}: twice the sample`, count(totalDeliveries(large)), ...finals(large), requests(large)],
      ...(loop === undefined
        ? []
        : [
            [
              `${policy}: all deliveries, plain loop`,
              count(classNames.reduce((sum, name) => sum + loop[name].deliveries, 0)),
              ...classNames.map((name) => percent(loop[name].delivered / loop[name].deliveries)),
              (
                classNames.reduce((sum, name) => sum + loop[name].requests, 0) /
                classNames.reduce((sum, name) => sum + loop[name].deliveries, 0)
              ).toFixed(2),
            ],
          ]),
    ];
  });
  return table(
    ['policy', 'deliveries', 'stable', 'intermittent', 'unreliable', 'requests per delivery'],
    rows,
  );
}

function run({ plan, seconds, threads, sample, fullRate: full }: LabResults): string {
  const deliveries = [...sample.values(), ...full.values()].reduce(
    (sum, each) => sum + totalDeliveries(each),
    0,
  );
  const { sample: scale } = plan;
  return `Seed ${scale.seed}. The sample has ${scale.perEndpointHour} deliveries per endpoint and hour for ${scale.days} virtual days. The runs took ${Math.ceil(seconds / 60)} minutes on ${threads} ${threads === 1 ? 'thread' : 'threads'} and sent ${count(deliveries)} deliveries through the engine. The default breaker opens on ${DEFAULT_BREAKER.consecutive} failures in a row, or if ${percent(DEFAULT_BREAKER.failureRate, 0)} of at least ${DEFAULT_BREAKER.minRequests} requests fail.`;
}

export const tables: Readonly<Record<string, (results: LabResults) => string>> = {
  run,
  calibration,
  classes,
  policies: ownPolicies,
  peers: peerPolicies,
  'full-rate': fullRate,
  busy,
  recovery,
  'scale-check': scaleCheck,
};
