/** API keys as text: `phk_…`. The database has only their hash. */
import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto';

const PREFIX = 'phk_';
/** 32 random bytes in base64url. */
const RANDOM_LENGTH = 43;
const CHECKSUM_BYTES = 6;
const CHECKSUM_LENGTH = 8;

/** Makes and recognizes API keys: `phk_`, 256 random bits, and a checksum of both under a secret of the database. */
export class ApiKeyFormat {
  readonly #secret: Buffer;

  readonly #prefix: string;

  constructor(secret: Buffer, prefix = PREFIX) {
    this.#secret = secret;
    this.#prefix = prefix;
  }

  /** The same format for another kind of token. The checksum covers the prefix, so one kind never passes as another. */
  withPrefix(prefix: string): ApiKeyFormat {
    return new ApiKeyFormat(this.#secret, prefix);
  }

  /** 256 random bits behind a prefix that secret scanners can search for. */
  generate(): string {
    const key = `${this.#prefix}${randomBytes(32).toString('base64url')}`;
    return `${key}${this.#checksum(key).toString('base64url')}`;
  }

  /** Whether the key ends in a valid checksum. False for an invented key, and for keys of versions that had no checksums. */
  hasChecksum(key: string): boolean {
    const end = this.#prefix.length + RANDOM_LENGTH;
    if (key.length !== end + CHECKSUM_LENGTH || !key.startsWith(this.#prefix)) return false;
    const given = Buffer.from(key.slice(end), 'base64url');
    return given.length === CHECKSUM_BYTES && timingSafeEqual(given, this.#checksum(key.slice(0, end)));
  }

  #checksum(key: string): Buffer {
    return createHmac('sha256', this.#secret).update(key).digest().subarray(0, CHECKSUM_BYTES);
  }
}

export function hashApiKey(key: string): Buffer {
  return hash('sha256', key, 'buffer');
}

/** The first characters of a key, to recognize it by. */
export const prefixOfApiKey = (key: string): string => key.slice(0, 10);
