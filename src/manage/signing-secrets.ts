/** Signing secrets as customers know them: `whsec_…` for HMAC, `whsk_…` for Ed25519. */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import type { SignatureProfile, SignatureSetting } from '../domain/endpoint.ts';
import { invalidField, type Problem } from '../domain/problem.ts';
import { MAX_LIVE_SECRETS } from '../postgres/queries/rotate-secret.ts';

export function signatureProfileOf(setting: SignatureSetting | undefined): SignatureProfile {
  if (setting === undefined) return 'standard';
  return typeof setting === 'string' ? setting : setting.profile;
}

const isAsymmetric = (profile: SignatureProfile): boolean => profile === 'standard-ed25519';

/** Whether both profiles use the same kind of secret, so that a change of profile can keep it. */
export function shareSecrets(one: SignatureProfile, other: SignatureProfile): boolean {
  return isAsymmetric(one) === isAsymmetric(other);
}

/** In DER, the raw key is the last 32 bytes. */
const ED25519_KEY_BYTES = 32;

export function generateSecret(profile: SignatureProfile): string {
  if (!isAsymmetric(profile)) return `whsec_${randomBytes(32).toString('base64')}`;
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const seed = privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(-ED25519_KEY_BYTES);
  const point = publicKey.export({ format: 'der', type: 'spki' }).subarray(-ED25519_KEY_BYTES);
  return `whsk_${Buffer.concat([seed, point]).toString('base64')}`;
}

/** Matches secrets of every profile: 24 to 64 bytes for HMAC, 64 bytes for Ed25519. */
export const SIGNING_SECRET = /^(whsec_[A-Za-z0-9+/]{32,86}={0,2}|whsk_[A-Za-z0-9+/]{86}={0,2})$/;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** Throws `invalid` unless the secret has the form that the profile needs. */
export function checkSecret(secret: string, profile: SignatureProfile): void {
  const asymmetric = isAsymmetric(profile);
  const prefix = asymmetric ? 'whsk_' : 'whsec_';
  const encoded = secret.startsWith(prefix) ? secret.slice(prefix.length) : '';
  const bytes = BASE64.test(encoded) ? Buffer.from(encoded, 'base64').length : 0;
  if (asymmetric ? bytes === 64 : bytes >= 24 && bytes <= 64) return;
  throw invalidField(
    'secret',
    `must be "${prefix}" followed by ${asymmetric ? '64' : '24 to 64'} bytes in base64`,
  );
}

/** The public half of an Ed25519 secret (`whpk_…`), which receivers verify with. Null for an HMAC secret. */
export function publicKeyOf(secret: string): string | null {
  if (!secret.startsWith('whsk_')) return null;
  return `whpk_${Buffer.from(secret.slice(5), 'base64').subarray(ED25519_KEY_BYTES).toString('base64')}`;
}

/** `field` is the setting that makes another secret. */
export const tooManySecrets = (field: 'overlap_seconds' | 'signature'): Problem =>
  invalidField(
    field,
    `${MAX_LIVE_SECRETS} secrets of this endpoint sign already: revoke the old ones (DELETE /v1/endpoints/{id}/secrets/previous)${
      field === 'overlap_seconds' ? ', or use 0' : ''
    }`,
  );
