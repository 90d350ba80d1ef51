import { randomUUID } from 'node:crypto';
import type { OutboxStore } from '../ports/outbox-store.ts';
import type { MemoryStore } from './memory-store.ts';
import type { StoredOutboxRow } from './rows.ts';

const MAX_REJECTED_COUNT = 1000;

export function createMemoryOutboxStore(store: MemoryStore): OutboxStore {
  return {
    async read({ afterSeq, minAgeMs, maxRows, maxBytes, exceptTenants = [] }) {
      const head = waitingRows(store)
        .filter(({ seq, tenant }) => Number(seq) > Number(afterSeq) && !exceptTenants.includes(tenant))
        .slice(0, maxRows);
      const oldest = Math.min(...head.map(({ createdAt }) => createdAt));
      if (minAgeMs > 0 && !(oldest < store.now() - minAgeMs)) return [];
      let bytesBefore = 0;
      return head
        .filter(({ data }) => {
          const fits = bytesBefore < maxBytes || bytesBefore === 0;
          bytesBefore += data.length;
          return fits;
        })
        .map(({ seq, id, tenant, type, data, idempotencyKey, options }) => ({
          seq,
          id,
          tenant,
          type,
          data,
          idempotencyKey,
          options,
        }));
    },
    async reject(rows) {
      for (const { seq, reason } of rows) {
        const row = store.outbox.get(Number(seq));
        if (row === undefined) continue;
        store.outbox.delete(Number(seq));
        const isTaken = store.rejectedOutbox.some(({ id }) => id === row.id);
        store.rejectedOutbox.push({ ...row, id: isTaken ? randomUUID() : row.id, reason });
      }
    },
    async readLag() {
      const first = waitingRows(store)[0];
      return {
        oldestSeq: first?.seq ?? null,
        lagMs: first === undefined ? 0 : Math.max(0, store.now() - first.createdAt),
        rejected: Math.min(store.rejectedOutbox.length, MAX_REJECTED_COUNT),
      };
    },
  };
}

const waitingRows = (store: MemoryStore): StoredOutboxRow[] =>
  [...store.outbox.values()]
    .filter(({ visibleAt }) => visibleAt <= store.visibleNow())
    .sort((a, b) => Number(a.seq) - Number(b.seq));
