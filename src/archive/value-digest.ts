import { createHash, type Hash } from 'node:crypto';
import type { ColumnType, ColumnValue } from './columns.ts';

/** A checksum of values: of those that the database returned, and of those that a file contains. They must be the same. */
export class ValueDigest {
  readonly #hash: Hash = createHash('sha256');

  /** Adds the values of one column of a row group. */
  add(name: string, type: ColumnType, values: ArrayLike<ColumnValue | undefined>): void {
    const hash = this.#hash;
    hash.update(`${name} ${values.length}\n`);
    if (type === 'bytes') {
      for (let n = 0; n < values.length; n += 1) {
        const bytes = values[n] as Uint8Array | null | undefined;
        hash.update(bytes == null ? '-' : `${bytes.length}:`);
        if (bytes != null) hash.update(bytes);
      }
      return;
    }
    // Typed arrays and BigInts have no JSON of their own.
    const plain = Array.from(values, (value) =>
      typeof value === 'bigint' ? String(value) : (value ?? null),
    );
    hash.update(JSON.stringify(plain));
  }

  finish(): string {
    return this.#hash.digest('hex');
  }
}
