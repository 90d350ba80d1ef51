/** Conditions between settings: each value may be valid alone, but not together with the other. */
import { isTenantId } from '../domain/event.ts';
import { DEFAULT_REGION_NAME, REGION_NAME, REGION_NAME_RULE } from '../domain/region.ts';
import { expiresFirst } from '../domain/retention.ts';
import { showBytes, showDuration } from './kinds.ts';
import type { Config } from './load.ts';
import type { SettingKey } from './names.ts';
import { retentionOf } from './retention.ts';

export interface Check {
  /** The settings it compares. The check is skipped if one of them is invalid. */
  readonly about: readonly SettingKey[];
  /** Describes the problem, or returns null. `name` returns the variable or flag that the user set. */
  problem(config: Config, name: (key: SettingKey) => string): string | null;
}

/** Addresses to listen on that no other machine can connect to. */
const ANY_ADDRESS: ReadonlySet<string> = new Set(['0.0.0.0', '::']);

export const checks: readonly Check[] = [
  {
    // Two renewals must fit into one lease. Otherwise one late answer of the database stops all sending.
    about: ['heartbeatMs', 'proofMs'],
    problem: ({ heartbeatMs, proofMs }, name) =>
      heartbeatMs * 2 < proofMs
        ? null
        : `${name('heartbeatMs')} (${showDuration(heartbeatMs)}) must be less than half of ${name('proofMs')} (${showDuration(proofMs)})`,
  },
  {
    // Another worker may take over only after the lease of the old one has expired.
    about: ['proofMs', 'deadAfterMs'],
    problem: ({ proofMs, deadAfterMs }, name) =>
      proofMs < deadAfterMs
        ? null
        : `${name('proofMs')} (${showDuration(proofMs)}) must be less than ${name('deadAfterMs')} (${showDuration(deadAfterMs)})`,
  },
  atMost('maxEventBytes', 'maxBatchBytes', showBytes),
  // A batch of the maximum size must fit into the empty queue. Otherwise it would always be refused.
  atMost('maxBatchBytes', 'acceptQueueBytes', showBytes),
  keptNoLongerThan('retentionDeliveriesDays', 'deliveries', 'retentionEventsDays', 'events'),
  keptNoLongerThan('retentionPayloadsDays', 'payloads', 'retentionEventsDays', 'events'),
  keptNoLongerThan('retentionAttemptsDays', 'attempts', 'retentionDeliveriesDays', 'deliveries'),
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
    about: ['region'],
    problem: ({ mode, region }, name) => {
      if (region === null) return null;
      if (!REGION_NAME.test(region) || region === DEFAULT_REGION_NAME)
        return `${name('region')} ${REGION_NAME_RULE}, and not be "${DEFAULT_REGION_NAME}"`;
      return mode === 'serve' ? null : `${name('region')} is for \`posthorn serve\``;
    },
  },
  {
    about: ['peerListen', 'processes'],
    problem: ({ peerListen, processes }, name) =>
      peerListen === null || peerListen.port === 0 || processes === 1
        ? null
        : `${name('peerListen')} must have port 0 with ${processes} processes: each takes a free port`,
  },
  {
    about: ['peerListen', 'peerHost'],
    problem: ({ peerListen, peerHost }, name) =>
      peerListen !== null && ANY_ADDRESS.has(peerListen.host) && peerHost === null
        ? `set ${name('peerHost')}: other nodes cannot connect to ${peerListen.host}`
        : null,
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
        : `${name('operatorTenant')} must be a tenant id: 1 to 128 letters, digits or any of . _ : - and start with a letter or digit`,
  },
  {
    about: ['smtpUrl', 'smtpFrom'],
    problem: ({ smtpUrl, smtpFrom }, name) =>
      (smtpUrl === null) === (smtpFrom === null)
        ? null
        : `${name('smtpUrl')} and ${name('smtpFrom')} must be set together`,
  },
  {
    about: ['oidcIssuer', 'oidcClientId'],
    problem: ({ oidcIssuer, oidcClientId }, name) =>
      (oidcIssuer === null) === (oidcClientId === null)
        ? null
        : `${name('oidcIssuer')} and ${name('oidcClientId')} must be set together`,
  },
  {
    // Tokens would travel in the clear.
    about: ['oidcIssuer'],
    problem: ({ oidcIssuer }, name) =>
      oidcIssuer === null || /^(https:|http:\/\/(localhost|127\.0\.0\.1|\[::1\])([:/]|$))/.test(oidcIssuer)
        ? null
        : `${name('oidcIssuer')} must start with https:// (http:// only on this machine)`,
  },
  {
    about: ['oidcTenantRoles', 'oidcTenantClaim'],
    problem: ({ oidcTenantRoles, oidcTenantClaim }, name) =>
      oidcTenantRoles.length === 0 || oidcTenantClaim !== null
        ? null
        : `${name('oidcTenantRoles')} needs ${name('oidcTenantClaim')}: the claim with the tenant`,
  },
  {
    about: ['kafkaBrokers', 'kafkaSourceTopics'],
    problem: ({ kafkaBrokers, kafkaSourceTopics }, name) =>
      kafkaBrokers.length > 0 || kafkaSourceTopics.length === 0
        ? null
        : `${name('kafkaSourceTopics')} needs ${name('kafkaBrokers')}`,
  },
  {
    about: ['backbone', 'kafkaBrokers'],
    problem: ({ backbone, kafkaBrokers }, name) =>
      backbone === 'postgres' || kafkaBrokers.length > 0
        ? null
        : `${name('backbone')}=kafka needs ${name('kafkaBrokers')}`,
  },
  {
    about: ['kafkaAcceptTopic'],
    problem: ({ kafkaAcceptTopic }, name) =>
      /^(?!\.{1,2}$)[A-Za-z0-9._-]+$/.test(kafkaAcceptTopic)
        ? null
        : `${name('kafkaAcceptTopic')} must have letters, digits, dots, hyphens and underscores only`,
  },
  {
    // Otherwise the records of producers would be taken for events that Posthorn wrote.
    about: ['kafkaAcceptTopic', 'kafkaSourceTopics'],
    problem: ({ kafkaAcceptTopic, kafkaSourceTopics }, name) =>
      kafkaSourceTopics.includes(kafkaAcceptTopic)
        ? `${name('kafkaSourceTopics')} must not contain ${name('kafkaAcceptTopic')} (${kafkaAcceptTopic})`
        : null,
  },
  atMost('kafkaAcceptMinInsync', 'kafkaAcceptReplicas', String),
  {
    about: ['kafkaSasl', 'kafkaUsername', 'kafkaPassword'],
    problem: ({ kafkaSasl, kafkaUsername, kafkaPassword }, name) =>
      kafkaSasl === 'none' || (kafkaUsername !== null && kafkaPassword !== null)
        ? null
        : `${name('kafkaSasl')} needs ${name('kafkaUsername')} and ${name('kafkaPassword')}`,
  },
  {
    about: ['kafkaTlsCert', 'kafkaTlsKey'],
    problem: ({ kafkaTlsCert, kafkaTlsKey }, name) =>
      (kafkaTlsCert === null) === (kafkaTlsKey === null)
        ? null
        : `${name('kafkaTlsCert')} and ${name('kafkaTlsKey')} must be set together`,
  },
  {
    // Two renewals must fit into one lease.
    about: ['kafkaRenewMs', 'kafkaLeaseMs'],
    problem: ({ kafkaRenewMs, kafkaLeaseMs }, name) =>
      kafkaRenewMs * 2 < kafkaLeaseMs
        ? null
        : `${name('kafkaRenewMs')} (${showDuration(kafkaRenewMs)}) must be less than half of ${name('kafkaLeaseMs')} (${showDuration(kafkaLeaseMs)})`,
  },
  {
    about: ['processes', 'port', 'role'],
    problem: ({ processes, port, role }, name) =>
      processes === 1 || port !== 0 || role === 'worker'
        ? null
        : `${name('port')} must not be 0 if ${name('processes')} is more than 1: the processes share the port`,
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

type RetentionKind = keyof ReturnType<typeof retentionOf>;

/** Attempts that are kept longer than their delivery could not be found. */
function keptNoLongerThan(
  partKey: SettingKey,
  part: RetentionKind,
  wholeKey: SettingKey,
  whole: RetentionKind,
): Check {
  const show = (days: number): string => (days === 0 ? '0: forever' : `${days} days`);
  return {
    about: [partKey, wholeKey],
    problem: (config, name) => {
      const days = retentionOf(config);
      return expiresFirst(days[part], days[whole])
        ? null
        : `${name(partKey)} (${show(days[part])}) must not be longer than ${name(wholeKey)} (${show(days[whole])})`;
    },
  };
}
