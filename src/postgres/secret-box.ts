import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';

/**
 * Secrets at rest: AES-256-GCM with a fresh nonce, bound to what they belong to (a ciphertext copied to another
 * endpoint's row does not open). The id of the key (a hash of it) is stored with the ciphertext, so that keys can be
 * rotated: new secrets are sealed with the current key, and old ones are opened with the key that sealed them.
 */
export interface Sealed {
  readonly keyId: string;
  readonly ciphertext: Buffer;
}

export interface SecretBox {
  /** The id of the current key. */
  readonly keyId: string;
  knows(keyId: string): boolean;
  seal(plaintext: string, belongsTo: string): Sealed;
  open(sealed: Sealed, belongsTo: string): string;
}

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export class SecretBoxError extends Error {
  override name = 'SecretBoxError';
}

/** The id of a key, which tells nothing about the key. */
export function keyIdOf(key: Buffer): string {
  return createHash('sha256').update('posthorn key id').update(key).digest('hex').slice(0, 12);
}

export function createSecretBox(current: Buffer, previous: readonly Buffer[] = []): SecretBox {
  const keys = new Map([...previous, current].map((key) => [keyIdOf(key), key]));
  const currentId = keyIdOf(current);
  return {
    keyId: currentId,
    knows: (keyId) => keys.has(keyId),
    seal(plaintext, belongsTo) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', current, nonce).setAAD(Buffer.from(belongsTo));
      const body = Buffer.concat([cipher.update(plaintext, 'utf8'), cipher.final()]);
      return { keyId: currentId, ciphertext: Buffer.concat([nonce, cipher.getAuthTag(), body]) };
    },
    open(sealed, belongsTo) {
      const key = keys.get(sealed.keyId);
      if (key === undefined) {
        throw new SecretBoxError(
          `A secret in the database is sealed with encryption key ${sealed.keyId}, which is not configured. ` +
            'Set POSTHORN_ENCRYPTION_KEY (or POSTHORN_PREVIOUS_ENCRYPTION_KEYS) to the key that was used before.',
        );
      }
      const nonce = sealed.ciphertext.subarray(0, NONCE_BYTES);
      const tag = sealed.ciphertext.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES);
      const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
        .setAAD(Buffer.from(belongsTo))
        .setAuthTag(tag);
      try {
        return (
          decipher.update(sealed.ciphertext.subarray(NONCE_BYTES + TAG_BYTES), undefined, 'utf8') +
          decipher.final('utf8')
        );
      } catch (cause) {
        throw new SecretBoxError('A secret in the database is damaged: it does not open with its key.', {
          cause,
        });
      }
    },
  };
}
