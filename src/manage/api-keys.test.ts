import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ApiKeyFormat } from './api-keys.ts';

const format = new ApiKeyFormat(randomBytes(32));

describe('the checksum of an API key', () => {
  it('is part of every new key', () => {
    for (let n = 0; n < 100; n += 1) {
      const key = format.generate();
      expect(key).toMatch(/^phk_[\w-]{51}$/);
      expect(format.hasChecksum(key)).toBe(true);
    }
  });

  it('differs for another key, another secret and any changed character', () => {
    const key = format.generate();
    expect(new ApiKeyFormat(randomBytes(32)).hasChecksum(key)).toBe(false);
    for (let at = 0; at < key.length - 1; at += 1) {
      const changed = `${key.slice(0, at)}${key[at] === 'A' ? 'B' : 'A'}${key.slice(at + 1)}`;
      expect(format.hasChecksum(changed), changed).toBe(false);
    }
    expect(format.hasChecksum(key.slice(0, -1))).toBe(false);
    expect(format.hasChecksum(`${key}A`)).toBe(false);
  });

  it('is not found in any other text', () => {
    fc.assert(
      fc.property(fc.string(), (text) => !format.hasChecksum(text) && !format.hasChecksum(`phk_${text}`)),
    );
    for (let n = 0; n < 10_000; n += 1)
      expect(format.hasChecksum(`phk_${randomBytes(39).toString('base64url').slice(0, 51)}`)).toBe(false);
  });
});
