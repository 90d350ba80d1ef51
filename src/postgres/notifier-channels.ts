/** The names of the NOTIFY channels and how messages look on the wire. */
import type { Uuid } from '../domain/ids.ts';
import type { Channel, Channels } from '../ports/notifier.ts';

export const CHANNEL_NAMES: Readonly<Record<Channel, string>> = {
  wake: 'posthorn_wake',
  probes: 'posthorn_probes',
  shards: 'posthorn_shards',
  endpoints: 'posthorn_endpoints',
  keys: 'posthorn_keys',
  tasks: 'posthorn_tasks',
  tenants: 'posthorn_tenants',
  catalogue: 'posthorn_catalogue',
  expunged: 'posthorn_expunged',
  tailInterest: 'posthorn_tail_interest',
  tail: 'posthorn_tail',
};

/** 300 ids of 23 characters stay below PostgreSQL's limit of 8,000 bytes. */
export const IDS_PER_WAKE = 300;
/** A wake message that starts with this asks the owner to look further back. */
const SWEEP_MARK = '*';

export function encodeWake({ endpointIds, scope }: Channels['wake']): string {
  const prefix = scope === 'sweep' ? SWEEP_MARK : '';
  return (
    prefix +
    endpointIds.map((id) => Buffer.from(id.replaceAll('-', ''), 'hex').toString('base64url')).join(',')
  );
}

/** Ignores what is not an id: a newer version may send more. */
export function decodeWake(payload: string): Channels['wake'] {
  const scope = payload.startsWith(SWEEP_MARK) ? 'sweep' : 'recent';
  const endpointIds = payload
    .replace(SWEEP_MARK, '')
    .split(',')
    .flatMap((text) => {
      const hex = Buffer.from(text, 'base64url').toString('hex');
      return hex.length === 32 ? [toUuid(hex)] : [];
    });
  return { endpointIds, scope };
}

const toUuid = (hex: string): Uuid =>
  `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;

const DECODERS: { readonly [C in Channel]: (payload: string) => Channels[C] } = {
  wake: decodeWake,
  probes: () => null,
  shards: () => null,
  endpoints: () => null,
  keys: () => null,
  tasks: () => null,
  tenants: () => null,
  catalogue: () => null,
  expunged: (payload) => payload,
  tailInterest: (payload) => payload,
  tail: (payload) => payload,
};

export const decodeMessage = <C extends Channel>(channel: C, payload: string): Channels[C] =>
  DECODERS[channel](payload);

export function encodeMessage<C extends Channel>(channel: C, message: Channels[C]): string {
  if (channel === 'wake') return encodeWake(message as Channels['wake']);
  return typeof message === 'string' ? message : '';
}
