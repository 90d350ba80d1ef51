/** Converts secrets to keys. Throws a TypeError for a malformed secret, because that is a mistake in the program. */
import { type Bytes, equalInConstantTime, fromBase64, toBytes } from './bytes.ts';

export interface HmacKey {
  readonly kind: 'hmac';
  /** Resolves to whether one of the signatures is valid. Compares all of them, so that the time reveals nothing. */
  verify(content: Bytes, signatures: readonly Bytes[]): Promise<boolean>;
}

export interface Ed25519Key {
  readonly kind: 'ed25519';
  verify(content: Bytes, signatures: readonly Bytes[]): Promise<boolean>;
}

export type Key = HmacKey | Ed25519Key;

/** Limits the work per request: a forger can send as many signatures as fit in a header. Posthorn sends at most five. */
const MAX_SIGNATURES = 20;

function createHmacKey(secret: Bytes): HmacKey {
  // Imported at the first use, so that creating a verifier is synchronous.
  let imported: ReturnType<typeof crypto.subtle.importKey> | undefined;
  return {
    kind: 'hmac',
    async verify(content, signatures) {
      imported ??= crypto.subtle.importKey('raw', secret, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
      const expected = new Uint8Array(await crypto.subtle.sign('HMAC', await imported, content));
      let isValid = false;
      for (const signature of signatures.slice(0, MAX_SIGNATURES)) {
        if (equalInConstantTime(expected, signature)) isValid = true;
      }
      return isValid;
    },
  };
}

function createEd25519Key(publicKey: Bytes): Ed25519Key {
  let imported: ReturnType<typeof crypto.subtle.importKey> | undefined;
  return {
    kind: 'ed25519',
    async verify(content, signatures) {
      imported ??= crypto.subtle.importKey('raw', publicKey, { name: 'Ed25519' }, false, ['verify']);
      const key = await imported;
      // The loop may end early: a public key and a signature are no secrets.
      for (const signature of signatures.slice(0, MAX_SIGNATURES)) {
        if (signature.length === 64 && (await crypto.subtle.verify('Ed25519', key, signature, content)))
          return true;
      }
      return false;
    },
  };
}

const PUBLIC_KEY_BYTES = 32;

/** The key of a Standard Webhooks secret: `whsec_…` or bare base64 is a shared secret, `whpk_…` a public key. */
export function createStandardKey(secret: string): Key {
  if (secret.startsWith('whsk_'))
    throw new TypeError('A "whsk_" key is for the sender; verify with the public key, "whpk_…".');
  if (secret.startsWith('whpk_')) {
    const publicKey = fromBase64(secret.slice(5));
    if (publicKey?.length !== PUBLIC_KEY_BYTES)
      throw new TypeError('A public key must be "whpk_" and base64 of 32 bytes.');
    return createEd25519Key(publicKey);
  }
  const bytes = fromBase64(secret.startsWith('whsec_') ? secret.slice(6) : secret);
  if (bytes === null) throw new TypeError('A secret must be "whsec_" and base64.');
  return createHmacKey(bytes);
}

/** The key of the other profiles: the bytes of the secret's text. */
export function createLiteralKey(secret: string): HmacKey {
  if (secret === '') throw new TypeError('The secret is empty.');
  return createHmacKey(toBytes(secret));
}
