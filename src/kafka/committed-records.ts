/**
 * Leaves out the records of aborted transactions and the markers of transactions. The client's own filter keeps aborted
 * records whose marker is not in the same answer.
 */
export interface TransactionBatch {
  readonly firstOffset: bigint;
  readonly producerId: bigint;
  /** Bit 4: transactional. Bit 5: control. */
  readonly attributes: number;
  readonly records: readonly { readonly key: Buffer | null }[];
}

export interface AbortedTransaction {
  readonly producerId: bigint;
  readonly firstOffset: bigint;
}

const TRANSACTIONAL = 0x10;
const CONTROL = 0x20;
const ABORT_MARKER = 0;

/** `aborted`: the transactions that the broker lists with these batches. */
export function filterCommitted<B extends TransactionBatch>(
  batches: readonly B[],
  aborted: readonly AbortedTransaction[],
): B[] {
  const starts = aborted.toSorted((a, b) => Number(a.firstOffset - b.firstOffset));
  const open = new Set<bigint>();
  let next = 0;
  return batches.filter((batch) => {
    while (next < starts.length && starts[next]!.firstOffset <= batch.firstOffset)
      open.add(starts[next++]!.producerId);
    if ((batch.attributes & CONTROL) !== 0) {
      if (markerOf(batch) === ABORT_MARKER) open.delete(batch.producerId);
      return false;
    }
    return (batch.attributes & TRANSACTIONAL) === 0 || !open.has(batch.producerId);
  });
}

/** A marker's key has a version and a type, both of 16 bits. */
function markerOf({ records }: TransactionBatch): number | null {
  const key = records[0]?.key;
  return key == null || key.length < 4 ? null : key.readInt16BE(2);
}
