/** A secret inside an endpoint's configuration. */
import type { SealedValue } from '../domain/endpoint-config.ts';
import type { SecretBox } from './secret-box.ts';

export function sealValue(value: string, belongsTo: string, box: SecretBox): SealedValue {
  const { keyId, ciphertext } = box.seal(value, belongsTo);
  return { key_id: keyId, ciphertext: ciphertext.toString('base64') };
}

export function openValue(sealed: SealedValue, belongsTo: string, box: SecretBox): string {
  return box.open({ keyId: sealed.key_id, ciphertext: Buffer.from(sealed.ciphertext, 'base64') }, belongsTo);
}
