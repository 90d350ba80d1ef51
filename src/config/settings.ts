/**
 * Every setting. To add one, add an entry in settings/: the type of `Config`, the environment variable, the flag, the
 * check at start, the line in the start log and the row in the docs are derived from it.
 *
 * The variable of `drainMs` is POSTHORN_DRAIN_MS and its flag --drain-ms, unless the entry says otherwise. Names carry
 * their unit. Conditions between settings are in checks.ts. `internal` settings have defaults that fit nearly every
 * deployment; docs/internal-settings.md lists them.
 */
import { egress, endpointLimits, keys } from './settings/access.ts';
import { converters } from './settings/converters.ts';
import { accepting, dispatching, ownership } from './settings/engine.ts';
import { kafka } from './settings/kafka.ts';
import { health, metrics, notices, operational, stream, tracing } from './settings/observing.ts';
import { redis } from './settings/redis.ts';
import { relay } from './settings/relay.ts';
import { retention } from './settings/retention.ts';
import { log, processes, server, storage } from './settings/server.ts';
import { signIn } from './settings/sign-in.ts';

/** In the order of the documentation. */
export const sections = {
  Server: server,
  Processes: processes,
  Storage: storage,
  Retention: retention,
  Keys: keys,
  'Console sign-in': signIn,
  Log: log,
  Accepting: accepting,
  Ownership: ownership,
  Dispatch: dispatching,
  Endpoints: endpointLimits,
  Converters: converters,
  Egress: egress,
  'Endpoint health': health,
  'Live tail': stream,
  Metrics: metrics,
  'Operational events': operational,
  Notices: notices,
  Tracing: tracing,
  Relay: relay,
  Kafka: kafka,
  Redis: redis,
};

export const settings = {
  ...server,
  ...processes,
  ...storage,
  ...retention,
  ...keys,
  ...signIn,
  ...log,
  ...accepting,
  ...ownership,
  ...dispatching,
  ...endpointLimits,
  ...converters,
  ...egress,
  ...stream,
  ...health,
  ...metrics,
  ...operational,
  ...notices,
  ...tracing,
  ...relay,
  ...kafka,
  ...redis,
};
