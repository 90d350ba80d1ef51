/** Conditions between settings: each value may be fine alone, but not beside the other. */
import { isTenantId } from '../domain/event.ts';
import { showBytes, showDuration } from './kinds.ts';
import type { Config } from './load.ts';
import type { SettingKey } from './names.ts';

export interface Check {
  /** The settings it is about: it is left out if one of them could not even be read. */
  readonly about: readonly SettingKey[];
  /** What is wrong, or null. `name` gives a setting the name under which the user knows it. */
  problem(config: Config, name: (key: SettingKey) => string): string | null;
}

export const checks: readonly Check[] = [
  {
    // Two renewals must fit into the age of a proof, or one late answer of the database stops all sending.
    about: ['heartbeatMs', 'proofMs'],
    problem: ({ heartbeatMs, proofMs }, name) =>
      heartbeatMs * 2 < proofMs
        ? null
        : `${name('heartbeatMs')} (${showDuration(heartbeatMs)}) must be less than half of ${name('proofMs')} (${showDuration(proofMs)})`,
  },
  {
    // Another worker takes over only when the old one has surely stopped starting attempts.
    about: ['proofMs', 'deadAfterMs'],
    problem: ({ proofMs, deadAfterMs }, name) =>
      proofMs < deadAfterMs
        ? null
        : `${name('proofMs')} (${showDuration(proofMs)}) must be less than ${name('deadAfterMs')} (${showDuration(deadAfterMs)})`,
  },
  atMost('maxEventBytes', 'maxBatchBytes', showBytes),
  // A batch request that is allowed must also fit into the empty queue, or it would be refused for ever.
  atMost('maxBatchBytes', 'acceptQueueBytes', showBytes),
  atMost('laneItems', 'laneBudgetItems', String),
  atMost('maxEventBytes', 'laneBudgetBytes', showBytes),
  {
    about: ['processes'],
    problem: ({ mode, processes }, name) =>
      mode === 'serve' || processes === 1
        ? null
        : `${name('processes')} is for \`posthorn serve\`: \`posthorn dev\` runs everything in one process`,
  },
  {
    about: ['role'],
    problem: ({ mode, role }, name) =>
      mode === 'serve' || role === 'all'
        ? null
        : `${name('role')} is for \`posthorn serve\`: \`posthorn dev\` always runs everything`,
  },
  {
    about: ['operatorTenant'],
    problem: ({ operatorTenant }, name) =>
      isTenantId(operatorTenant)
        ? null
        : `${name('operatorTenant')} must be a tenant id: 1 to 128 letters, digits, or any of . _ : - and begin with a letter or digit`,
  },
  {
    about: ['processes', 'inbox'],
    problem: ({ processes, inbox }, name) =>
      !inbox || processes === 1
        ? null
        : `${name('inbox')} is for a single process, and ${name('processes')} is ${processes}: a request would arrive at one, and be looked for in another`,
  },
  {
    about: ['processes', 'port', 'role'],
    problem: ({ processes, port, role }, name) =>
      processes === 1 || port !== 0 || role === 'worker'
        ? null
        : `${name('port')} must be a fixed one when ${name('processes')} is more than 1: the processes share it`,
  },
];

type NumericKey = { [K in keyof Config]: Config[K] extends number ? K : never }[keyof Config] & SettingKey;

function atMost(smaller: NumericKey, larger: NumericKey, show: (value: number) => string): Check {
  return {
    about: [smaller, larger],
    problem: (config, name) =>
      config[smaller] <= config[larger]
        ? null
        : `${name(smaller)} (${show(config[smaller])}) must not be larger than ${name(larger)} (${show(config[larger])})`,
  };
}
