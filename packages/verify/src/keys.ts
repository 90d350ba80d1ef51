/** Secrets as they are handed out, made into keys. A secret that cannot be one is a mistake in the program: TypeError. */
import { type Bytes, equalInConstantTime, fromBase64, toBytes } from './bytes.ts';

export interface HmacKey {
  readonly kind: 'hmac';
  /** Whether one of these signatures is right. All are compared, whichever fits. */
  verify(content: Bytes, signatures: readonly Bytes[]): Promise<boolean>;
}

export interface Ed25519Key {
  readonly kind: 'ed25519';
  verify(content: Bytes, signatures: readonly Bytes[]): Promise<boolean>;
}

export type Key = HmacKey | Ed25519Key;

/** Signatures looked at, at most: five secrets may be live, and a forger may send as many as fit in a header. */
const MOST_SIGNATURES = 20;

function hmacKey(secret: Bytes): HmacKey {
  // Imported at the first use: creating a verifier stays synchronous, also where modules may not await.
  let imported: ReturnType<typeof crypto.subtle.importKey> | undefined;
  return {
    kind: 'hmac',
    async verify(content, signatures) {
      imported ??= crypto.subtle.importKey('raw', secret, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
      const right = new Uint8Array(await crypto.subtle.sign('HMAC', await imported, content));
      let fits = false;
      for (const signature of signatures.slice(0, MOST_SIGNATURES)) {
        if (equalInConstantTime(right, signature)) fits = true;
      }
      return fits;
    },
  };
}

function ed25519Key(publicKey: Bytes): Ed25519Key {
  let imported: ReturnType<typeof crypto.subtle.importKey> | undefined;
  return {
    kind: 'ed25519',
    async verify(content, signatures) {
      imported ??= crypto.subtle.importKey('raw', publicKey, { name: 'Ed25519' }, false, ['verify']);
      const key = await imported;
      // Nothing here is secret: whoever asks has the public key and the signature.
      for (const signature of signatures.slice(0, MOST_SIGNATURES)) {
        if (signature.length === 64 && (await crypto.subtle.verify('Ed25519', key, signature, content)))
          return true;
      }
      return false;
    },
  };
}

const PUBLIC_KEY_BYTES = 32;

/** Standard Webhooks: `whsec_` (or bare base64) is shared, `whpk_` is the public half of a key pair. */
export function standardKey(secret: string): Key {
  if (secret.startsWith('whsk_'))
    throw new TypeError('A "whsk_" key is for the sender; verify with the public key, "whpk_…".');
  if (secret.startsWith('whpk_')) {
    const publicKey = fromBase64(secret.slice(5));
    if (publicKey?.length !== PUBLIC_KEY_BYTES)
      throw new TypeError('A public key must be "whpk_" and base64 of 32 bytes.');
    return ed25519Key(publicKey);
  }
  const bytes = fromBase64(secret.startsWith('whsec_') ? secret.slice(6) : secret);
  if (bytes === null) throw new TypeError('A secret must be "whsec_" and base64.');
  return hmacKey(bytes);
}

/** The other profiles take the text of the secret as it stands. */
export function literalKey(secret: string): HmacKey {
  if (secret === '') throw new TypeError('The secret is empty.');
  return hmacKey(toBytes(secret));
}
