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
 * The first three have one signature per active secret. The last two have room for one: a rotation chooses which secret
 * signs the header, and from when on. The signature of the other one is in `<header>-next` or `<header>-previous`
 * (docs/signatures.md).
 */
import { createPrivateKey, type KeyObject, sign as signAsymmetric } from 'node:crypto';
import type { Endpoint, EndpointSecret, SignatureProfile } from '../domain/endpoint.ts';
import type { Message } from './envelope.ts';
import { HMAC_HEADROOM, hmac, hmacKey } from './hmac.ts';
import {
  groupByForm,
  headersOfOneSignature,
  isActive,
  isStandard,
  type SignatureForm,
  signatureForm,
} from './signature-headers.ts';

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
  /** Signs `memory` from `start` on. */
  sign(memory: Buffer, start: number): string;
}

export class SecretUnusableError extends Error {
  override readonly name = 'SecretUnusableError';
}

function symmetric(secret: Buffer, encoding: 'base64' | 'hex'): Key {
  const key = hmacKey(secret);
  return { sign: (memory, start) => hmac(key, memory, start, encoding) };
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

function keyOf(profile: SignatureProfile, secret: string): Key {
  switch (profile) {
    case 'standard':
      return symmetric(decodeSecret(secret, 'whsec_'), 'base64');
    case 'standard-ed25519': {
      const key = ed25519Key(secret);
      return {
        sign: (memory, start) => signAsymmetric(null, memory.subarray(start), key).toString('base64'),
      };
    }
    case 'hex':
    case 'stripe':
    case 'github':
      return symmetric(Buffer.from(secret), 'hex');
  }
}

/** Adds the signatures of one form. Returns false if none of its secrets is active. */
type FormSigner = (input: SignInput, headers: Record<string, string>) => boolean;

/**
 * After a change between HMAC and Ed25519, the older secrets keep signing in their old form. If both forms write lists of
 * the same kind, all signatures share one header. Otherwise those of the older secrets have their own header.
 */
export function createSigner(endpoint: Endpoint): Signer {
  const own = signatureForm(endpoint.signature);
  const [current, ...kept] = groupByForm(own, endpoint.secrets).map(({ form, members }) => ({
    form,
    sign: createFormSigner(form, members),
  }));
  const newNoSecretError = () => new SecretUnusableError('The endpoint has no active secret.');
  if (kept.length === 0)
    return (input, headers) => {
      if (!current!.sign(input, headers)) throw newNoSecretError();
    };
  return (input, headers) => {
    const signed: Record<string, string> = {};
    let isSigned = current!.sign(input, signed);
    for (const { form, sign } of kept) {
      const older: Record<string, string> = {};
      isSigned = sign(input, older) || isSigned;
      for (const [name, value] of Object.entries(older)) {
        if (signed[name] === undefined) signed[name] = value;
        else if (isStandard(form.profile) && isStandard(own.profile)) signed[name] += ` ${value}`;
        else signed[`${name}-previous`] ??= value;
      }
    }
    if (!isSigned) throw newNoSecretError();
    Object.assign(headers, signed);
  };
}

function createFormSigner(
  { profile, header, prefix }: SignatureForm,
  secrets: readonly EndpointSecret[],
): FormSigner {
  const keys = secrets.map((entry) => ({
    expiresAt: entry.expiresAt,
    mainFrom: entry.mainFrom ?? null,
    key: keyOf(profile, entry.secret),
  }));

  const sign = (message: Message, before: string, active: typeof keys): string[] => {
    const start = message.bodyAt - before.length;
    message.memory.write(before, start, 'latin1');
    return active.map(({ key }) => prefix + key.sign(message.memory, start));
  };
  const activeAt = (nowMs: number): typeof keys => keys.filter((entry) => isActive(entry, nowMs));

  switch (profile) {
    case 'standard':
    case 'standard-ed25519':
      return ({ eventId, timestampSeconds, message, nowMs }, headers) => {
        const signatures = sign(message, `${eventId}.${timestampSeconds}.`, activeAt(nowMs));
        if (signatures.length > 0) headers[header] = signatures.join(' ');
        return signatures.length > 0;
      };
    case 'stripe':
      return ({ timestampSeconds, message, nowMs }, headers) => {
        const signatures = sign(message, `${timestampSeconds}.`, activeAt(nowMs));
        if (signatures.length > 0) headers[header] = `t=${timestampSeconds},${signatures.join(',')}`;
        return signatures.length > 0;
      };
    case 'hex':
    case 'github':
      return ({ message, nowMs }, headers) => {
        const active = activeAt(nowMs);
        const signatures = sign(message, '', active);
        headersOfOneSignature(header, active, nowMs).forEach((name, index) => {
          if (name !== null) headers[name] = signatures[index]!;
        });
        return signatures.length > 0;
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
