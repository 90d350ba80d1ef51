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
    const read = new Reader(payload);
    switch (read.letter()) {
      case 'B':
        return {
          kind: 'begin',
          commitLsn: read.uint64(),
          committedAtMicros: read.int64(),
          xid: read.uint32(),
        };
      case 'C':
        read.skip(1 + 8); // flags, the commit record's own position
        return { kind: 'commit', endLsn: read.uint64() };
      case 'R':
        this.#relation(read);
        return OTHER;
      case 'I':
        return this.#insert(read);
      case 'M':
        return {
          kind: 'message',
          transactional: (read.uint8() & 1) === 1,
          lsn: read.uint64(),
          prefix: read.text(),
          content: read.bytes(read.uint32()),
        };
      default:
        return OTHER;
    }
  }

  #relation(read: Reader): void {
    const relation = read.uint32();
    // An empty schema name stands for pg_catalog.
    const isWanted = this.#isWanted(read.text() || 'pg_catalog', read.text());
    if (!isWanted) {
      this.#columns.delete(relation);
      return;
    }
    read.skip(1); // replica identity
    const names = Array.from({ length: read.uint16() }, () => {
      read.skip(1); // part of the key or not
      const name = read.text();
      read.skip(4 + 4); // type and its modifier
      return name;
    });
    this.#columns.set(relation, names);
  }

  #insert(read: Reader): Change {
    const columns = this.#columns.get(read.uint32());
    if (columns === undefined) return OTHER;
    read.skip(1); // 'N': the new row follows
    const values = new Map<string, Buffer | null>();
    const count = read.uint16();
    for (let index = 0; index < count; index += 1) {
      const kind = read.letter();
      // A new row has all its values, as text or NULL. 'u' (unchanged, left out) occurs in updates only.
      values.set(columns[index]!, kind === 't' || kind === 'b' ? read.bytes(read.uint32()) : null);
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
