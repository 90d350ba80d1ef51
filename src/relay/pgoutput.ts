/**
 * Decodes the messages of PostgreSQL's output plugin `pgoutput` (protocol version 1: whole transactions, after commit):
 *
 *   Begin · (Relation · Insert | Message)* · Commit
 *
 * It decodes only what the relay needs. Buffers are views of the network buffer: copy what you keep.
 */
export interface Begin {
  readonly kind: 'begin';
  /** Position of the commit record. Together with the other two fields it identifies the transaction. */
  readonly commitLsn: bigint;
  readonly committedAtMicros: bigint;
  readonly xid: number;
}

export interface Commit {
  readonly kind: 'commit';
  /** The position to confirm when everything before it is durable. */
  readonly endLsn: bigint;
}

export interface Insert {
  readonly kind: 'insert';
  /** Values as text, by column name. Null stands for NULL. */
  readonly values: ReadonlyMap<string, Buffer | null>;
}

export interface LogicalMessage {
  readonly kind: 'message';
  /** False: the message was written immediately, even if its transaction was rolled back. */
  readonly transactional: boolean;
  readonly lsn: bigint;
  readonly prefix: string;
  readonly content: Buffer;
}

/** Anything that the relay does not need: rows of other tables, updates, truncates, origins. */
export interface Other {
  readonly kind: 'other';
}

export type Change = Begin | Commit | Insert | LogicalMessage | Other;

const OTHER: Other = { kind: 'other' };
const POSTGRES_EPOCH_MS = 946_684_800_000; // 2000-01-01

export const microsToUnixMs = (micros: bigint): number => Number(micros / 1000n) + POSTGRES_EPOCH_MS;

export class PgOutputDecoder {
  /** Column names of the wanted tables, by relation id. The server sends them again when a table changes. */
  readonly #columns = new Map<number, readonly string[]>();
  readonly #isWanted: (schema: string, table: string) => boolean;

  constructor(isWanted: (schema: string, table: string) => boolean) {
    this.#isWanted = isWanted;
  }

  decode(payload: Buffer): Change {
    const reader = new Reader(payload);
    switch (reader.letter()) {
      case 'B':
        return {
          kind: 'begin',
          commitLsn: reader.uint64(),
          committedAtMicros: reader.int64(),
          xid: reader.uint32(),
        };
      case 'C':
        reader.skip(1 + 8); // flags, the commit record's own position
        return { kind: 'commit', endLsn: reader.uint64() };
      case 'R':
        this.#readRelation(reader);
        return OTHER;
      case 'I':
        return this.#readInsert(reader);
      case 'M':
        return {
          kind: 'message',
          transactional: (reader.uint8() & 1) === 1,
          lsn: reader.uint64(),
          prefix: reader.text(),
          content: reader.bytes(reader.uint32()),
        };
      default:
        return OTHER;
    }
  }

  #readRelation(reader: Reader): void {
    const relation = reader.uint32();
    // An empty schema name stands for pg_catalog.
    const isWanted = this.#isWanted(reader.text() || 'pg_catalog', reader.text());
    if (!isWanted) {
      this.#columns.delete(relation);
      return;
    }
    reader.skip(1); // replica identity
    const names = Array.from({ length: reader.uint16() }, () => {
      reader.skip(1); // part of the key or not
      const name = reader.text();
      reader.skip(4 + 4); // type and its modifier
      return name;
    });
    this.#columns.set(relation, names);
  }

  #readInsert(reader: Reader): Change {
    const columns = this.#columns.get(reader.uint32());
    if (columns === undefined) return OTHER;
    reader.skip(1); // 'N': the new row follows
    const values = new Map<string, Buffer | null>();
    const count = reader.uint16();
    for (let index = 0; index < count; index += 1) {
      const kind = reader.letter();
      // A new row has all its values, as text or NULL. 'u' (unchanged, left out) occurs in updates only.
      values.set(columns[index]!, kind === 't' || kind === 'b' ? reader.bytes(reader.uint32()) : null);
    }
    return { kind: 'insert', values };
  }
}

class Reader {
  readonly #buffer: Buffer;
  #at = 0;

  constructor(buffer: Buffer) {
    this.#buffer = buffer;
  }

  skip(bytes: number): void {
    this.#at += bytes;
  }

  letter(): string {
    return String.fromCharCode(this.uint8());
  }

  uint8(): number {
    return this.#buffer.readUInt8(this.#move(1));
  }

  uint16(): number {
    return this.#buffer.readUInt16BE(this.#move(2));
  }

  uint32(): number {
    return this.#buffer.readUInt32BE(this.#move(4));
  }

  uint64(): bigint {
    return this.#buffer.readBigUInt64BE(this.#move(8));
  }

  int64(): bigint {
    return this.#buffer.readBigInt64BE(this.#move(8));
  }

  /** Reads text up to a NUL byte. */
  text(): string {
    const end = this.#buffer.indexOf(0, this.#at);
    if (end === -1) throw new RangeError('Unterminated text in a replication message');
    return this.#buffer.toString('utf8', this.#move(end + 1 - this.#at), end);
  }

  bytes(length: number): Buffer {
    const start = this.#move(length);
    if (this.#at > this.#buffer.length) throw new RangeError('A replication message ends too early');
    return this.#buffer.subarray(start, this.#at);
  }

  #move(bytes: number): number {
    const start = this.#at;
    this.#at += bytes;
    return start;
  }
}
