/** API keys as text: `phk_…`. The database has only their hash. */
import { hash, randomBytes } from 'node:crypto';

/** 256 random bits behind a prefix that secret scanners can search for. */
export function generateApiKey(): string {
  return `phk_${randomBytes(32).toString('base64url')}`;
}

export function hashApiKey(key: string): Buffer {
  return hash('sha256', key, 'buffer');
}

/** The first characters of a key, to recognize it by. */
export const prefixOfApiKey = (key: string): string => key.slice(0, 10);
