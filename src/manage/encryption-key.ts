import type { Uuid } from '../domain/ids.ts';
import type { Pool } from '../postgres/database.ts';
import {
  countOtherKeys,
  resealAnswersBatch,
  resealBatch,
  resealHeadersBatch,
  resealSettingsBatch,
} from '../postgres/queries/rotate-encryption-key.ts';
import { type SecretBox, SecretBoxError } from '../postgres/secret-box.ts';

const BATCH = 500;

/**
 * Encrypts every stored secret with the current key of `box`, and returns how many it encrypted. Can be interrupted and
 * repeated. Throws a `SecretBoxError` if `box` lacks a key that is in use (nothing is changed then), or if a running
 * server still uses another key.
 */
export async function rotateEncryptionKey(
  pool: Pool,
  box: SecretBox,
  onProgress: (done: number, total: number) => void,
): Promise<number> {
  const before = await countOtherKeys(pool, box.keyId);
  checkKeysAreKnown(before, box);
  const total = sum(before);
  let done = 0;
  for (const reseal of [resealBatch, resealHeadersBatch, resealSettingsBatch, resealAnswersBatch]) {
    let after: Uuid | null = null;
    for (;;) {
      const batch = await reseal(pool, box, after, BATCH);
      if (batch === null) break;
      after = batch.last;
      done += batch.resealed;
      onProgress(done, Math.max(total, done));
    }
  }
  const left = sum(await countOtherKeys(pool, box.keyId));
  if (left > 0) {
    throw new SecretBoxError(
      `${left} secrets are not encrypted with key ${box.keyId}: a running server still uses another key. ` +
        'Restart it with the new settings, and run this command again.',
    );
  }
  return done;
}

function checkKeysAreKnown(used: ReadonlyMap<string, number>, box: SecretBox): void {
  const unknown = [...used].filter(([keyId]) => !box.knows(keyId));
  if (unknown.length === 0) return;
  const list = unknown.map(([keyId, secrets]) => `${secrets} with key ${keyId}`).join(', ');
  throw new SecretBoxError(
    `Some secrets are encrypted with a key that is not configured (${list}). Nothing was changed. ` +
      'Add it to POSTHORN_PREVIOUS_ENCRYPTION_KEYS.',
  );
}

const sum = (counts: ReadonlyMap<string, number>): number =>
  [...counts.values()].reduce((total, count) => total + count, 0);
