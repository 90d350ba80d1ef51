/**
 * What each profile signs, and where it puts the signature.
 *
 * | profile  | signed                                  | header                                               |
 * |----------|-----------------------------------------|------------------------------------------------------|
 * | standard | `webhook-id.webhook-timestamp.body`     | webhook-signature: v1,… v1a,… (space separated)      |
 * | stripe   | `t.body`                                | stripe-signature: t=…,v1=…,v1=…                      |
 * | hex      | `body`                                  | x-webhook-signature: sha256=…                        |
 * | github   | `body`                                  | x-hub-signature-256: sha256=…                        |
 *
 * During a secret rotation `standard` and `stripe` carry one signature per active secret. The header of `hex` and `github`
 * holds only one. The signature of a newer secret is then in `<header>-next`, and that of an older one in `<header>-previous`.
 * Both are read too.
 */
import { type Bytes, fromBase64, fromHex, toBytes } from './bytes.ts';
import { VerificationError } from './errors.ts';
import { type HeadersLike, readHeader, requireHeader } from './headers.ts';
import type { Key } from './keys.ts';

export type Profile = 'standard' | 'stripe' | 'hex' | 'github';

/** What the headers of a request say about its signature. */
export interface Claim {
  /** The signed content starts with this; the body follows. */
  readonly signedPrefix: Bytes;
  readonly signatures: Readonly<Record<Key['kind'], readonly Bytes[]>>;
  /** Part of the signed content; null if the profile signs no id. */
  readonly id: string | null;
  readonly timestampSeconds: number | null;
}

export interface SignatureNames {
  readonly header: string;
  readonly prefix: string;
}

export const DEFAULT_NAMES: Readonly<Record<Profile, SignatureNames>> = {
  standard: { header: 'webhook-signature', prefix: 'v1,' },
  stripe: { header: 'stripe-signature', prefix: 'v1=' },
  hex: { header: 'x-webhook-signature', prefix: 'sha256=' },
  github: { header: 'x-hub-signature-256', prefix: 'sha256=' },
};

export function readClaim(profile: Profile, names: SignatureNames, headers: HeadersLike): Claim {
  switch (profile) {
    case 'standard':
      return readStandard(names, headers);
    case 'stripe':
      return readStripe(names, headers);
    case 'hex':
    case 'github':
      return readPlain(names, headers);
  }
}

function readStandard({ header, prefix }: SignatureNames, headers: HeadersLike): Claim {
  const id = requireHeader(headers, 'webhook-id');
  const timestamp = requireHeader(headers, 'webhook-timestamp');
  const signatures = { hmac: [] as Bytes[], ed25519: [] as Bytes[] };
  // A custom prefix stands for both kinds of keys.
  const isCustom = prefix !== DEFAULT_NAMES.standard.prefix;
  const prefixes: [string, Key['kind']][] = [
    [prefix, 'hmac'],
    [isCustom ? prefix : 'v1a,', 'ed25519'],
  ];
  for (const entry of requireHeader(headers, header).split(' ')) {
    for (const [start, kind] of prefixes) {
      // Ignores signatures of unknown versions.
      const signature = entry.startsWith(start) ? fromBase64(entry.slice(start.length)) : null;
      if (signature !== null) signatures[kind].push(signature);
    }
  }
  return {
    signedPrefix: toBytes(`${id}.${timestamp}.`),
    signatures,
    id,
    timestampSeconds: readTimestamp('webhook-timestamp', timestamp),
  };
}

function readStripe({ header, prefix }: SignatureNames, headers: HeadersLike): Claim {
  const hmac: Bytes[] = [];
  let timestamp: string | null = null;
  for (const part of requireHeader(headers, header).split(',')) {
    const entry = part.trim();
    if (entry.startsWith('t=')) {
      if (timestamp !== null)
        throw new VerificationError('malformed_header', `${header} has two timestamps.`);
      timestamp = entry.slice(2);
    } else if (entry.startsWith(prefix)) {
      const signature = fromHex(entry.slice(prefix.length));
      if (signature !== null) hmac.push(signature);
    }
  }
  if (timestamp === null)
    throw new VerificationError('malformed_header', `${header} has no timestamp (t=…).`);
  return {
    signedPrefix: toBytes(`${timestamp}.`),
    signatures: { hmac, ed25519: [] },
    id: null,
    timestampSeconds: readTimestamp(header, timestamp),
  };
}

function readPlain({ header, prefix }: SignatureNames, headers: HeadersLike): Claim {
  const values = [
    requireHeader(headers, header),
    readHeader(headers, `${header}-next`),
    readHeader(headers, `${header}-previous`),
  ];
  const hmac: Bytes[] = [];
  for (const value of values) {
    const signature = value?.startsWith(prefix) ? fromHex(value.slice(prefix.length)) : null;
    if (signature !== null) hmac.push(signature);
  }
  return { signedPrefix: toBytes(''), signatures: { hmac, ed25519: [] }, id: null, timestampSeconds: null };
}

const SECONDS = /^\d{1,12}$/;

function readTimestamp(header: string, text: string): number {
  if (!SECONDS.test(text))
    throw new VerificationError('malformed_header', `${header} is not a time in seconds.`);
  return Number(text);
}
