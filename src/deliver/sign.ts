/**
 * Signatures. The bytes that are signed are the bytes that are sent, and the timestamp is the attempt's own.
 *
 * | profile          | signed                    | key             | header                              |
 * |------------------|---------------------------|-----------------|-------------------------------------|
 * | standard         | `id.timestamp.body`       | base64-decoded  | webhook-signature: v1,… v1,…        |
 * | standard-ed25519 | `id.timestamp.body`       | base64-decoded  | webhook-signature: v1a,… v1a,…      |
 * | stripe           | `timestamp.body`          | literal text    | stripe-signature: t=…,v1=…,v1=…     |
 * | hex              | `body`                    | literal text    | x-webhook-signature: sha256=…       |
 * | github           | `body`                    | literal text    | x-hub-signature-256: sha256=…       |
 *
 * The first three have one signature per active secret. The last two have room for one: until the previous secret
 * expires or is revoked, its signature stays in the header, and that of the new secret is sent in `<header>-next`. So a
 * rotation does not break receivers that have not changed their secret yet.
 */
import { createPrivateKey, type KeyObject, sign as signAsymmetric } from 'node:crypto';
import type { Endpoint, SignatureProfile } from '../domain/endpoint.ts';
import type { Message } from './envelope.ts';
import { HMAC_HEADROOM, hmac, hmacKey } from './hmac.ts';

/** Free bytes that a signer needs before the body: for `id.timestamp.`, and for the HMAC block before that. */
export const SIGNING_HEADROOM = HMAC_HEADROOM + 64;

export interface SignInput {
  readonly eventId: string;
  readonly timestampSeconds: number;
  /** With at least SIGNING_HEADROOM before the body. */
  readonly message: Message;
  readonly nowMs: number;
}

/** Adds the signature headers of one attempt. Throws if no secret is active: nothing is sent unsigned. */
export type Signer = (input: SignInput, headers: Record<string, string>) => void;

interface Key {
  readonly expiresAt: number | null;
  /** Signs `memory` from `start` on. */
  sign(memory: Buffer, start: number): string;
}

const DEFAULT_HEADER: Record<SignatureProfile, string> = {
  standard: 'webhook-signature',
  'standard-ed25519': 'webhook-signature',
  hex: 'x-webhook-signature',
  stripe: 'stripe-signature',
  github: 'x-hub-signature-256',
};

const DEFAULT_PREFIX: Record<SignatureProfile, string> = {
  standard: 'v1,',
  'standard-ed25519': 'v1a,',
  hex: 'sha256=',
  stripe: 'v1=',
  github: 'sha256=',
};

export class SecretUnusableError extends Error {
  override readonly name = 'SecretUnusableError';
}

function symmetric(secret: Buffer, encoding: 'base64' | 'hex', expiresAt: number | null): Key {
  const key = hmacKey(secret);
  return { expiresAt, sign: (memory, start) => hmac(key, memory, start, encoding) };
}

/** An ed25519 private key in PKCS #8 is this fixed header followed by the 32 bytes of the seed. */
const PKCS8_ED25519 = Buffer.from('302e020100300506032b657004220420', 'hex');

function ed25519Key(secret: string): KeyObject {
  const bytes = decodeSecret(secret, 'whsk_');
  if (bytes.length !== 64 && bytes.length !== 32)
    throw new SecretUnusableError('An ed25519 secret is 64 bytes: seed and public key.');
  return createPrivateKey({
    key: Buffer.concat([PKCS8_ED25519, bytes.subarray(0, 32)]),
    format: 'der',
    type: 'pkcs8',
  });
}

function decodeSecret(secret: string, prefix: string): Buffer {
  const bytes = Buffer.from(secret.startsWith(prefix) ? secret.slice(prefix.length) : secret, 'base64');
  if (bytes.length === 0) throw new SecretUnusableError('The secret is not base64.');
  return bytes;
}

function keyOf(profile: SignatureProfile, secret: string, expiresAt: number | null): Key {
  switch (profile) {
    case 'standard':
      return symmetric(decodeSecret(secret, 'whsec_'), 'base64', expiresAt);
    case 'standard-ed25519': {
      const key = ed25519Key(secret);
      return {
        expiresAt,
        sign: (memory, start) => signAsymmetric(null, memory.subarray(start), key).toString('base64'),
      };
    }
    case 'hex':
    case 'stripe':
    case 'github':
      return symmetric(Buffer.from(secret), 'hex', expiresAt);
  }
}

export function createSigner(endpoint: Endpoint): Signer {
  const setting = typeof endpoint.signature === 'string' ? null : endpoint.signature;
  const profile = setting === null ? (endpoint.signature as SignatureProfile) : setting.profile;
  const header = (setting?.header ?? DEFAULT_HEADER[profile]).toLowerCase();
  const prefix = setting?.prefix ?? DEFAULT_PREFIX[profile];
  const keys = endpoint.secrets.map((entry) => keyOf(profile, entry.secret, entry.expiresAt));

  const sign = (message: Message, before: string, nowMs: number): string[] => {
    const start = message.bodyAt - before.length;
    message.memory.write(before, start, 'latin1');
    const signatures: string[] = [];
    for (const key of keys) {
      if (key.expiresAt === null || key.expiresAt > nowMs)
        signatures.push(prefix + key.sign(message.memory, start));
    }
    if (signatures.length === 0) throw new SecretUnusableError('The endpoint has no active secret.');
    return signatures;
  };

  switch (profile) {
    case 'standard':
    case 'standard-ed25519':
      return ({ eventId, timestampSeconds, message, nowMs }, headers) => {
        headers[header] = sign(message, `${eventId}.${timestampSeconds}.`, nowMs).join(' ');
      };
    case 'stripe':
      return ({ timestampSeconds, message, nowMs }, headers) => {
        const signatures = sign(message, `${timestampSeconds}.`, nowMs);
        headers[header] = `t=${timestampSeconds},${signatures.join(',')}`;
      };
    case 'hex':
    case 'github':
      return ({ message, nowMs }, headers) => {
        const signatures = sign(message, '', nowMs);
        headers[header] = signatures.at(-1)!;
        if (signatures.length > 1) headers[`${header}-next`] = signatures[0]!;
      };
  }
}

/** Returns the signature headers for a body that was built elsewhere. */
export function signMessage(
  endpoint: Endpoint,
  given: Omit<SignInput, 'message'> & { readonly body: Buffer },
): Record<string, string> {
  const memory = Buffer.concat([Buffer.alloc(SIGNING_HEADROOM), given.body]);
  const headers: Record<string, string> = {};
  createSigner(endpoint)({ ...given, message: { memory, bodyAt: SIGNING_HEADROOM } }, headers);
  return headers;
}
