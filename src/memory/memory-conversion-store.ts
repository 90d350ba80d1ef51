import { eventIdOfDelivery, type Uuid } from '../domain/ids.ts';
import { type ConversionStore, conversionName, type StoredConversion } from '../ports/conversion-store.ts';
import type { MemoryStore } from './memory-store.ts';

export function createMemoryConversionStore(store: MemoryStore): ConversionStore {
  return {
    async keep(conversions) {
      const kept = new Map<string, Buffer | null>();
      for (const conversion of conversions) {
        const name = conversionName(conversion);
        if (!store.events.has(conversion.eventId)) {
          kept.set(name, null);
          continue;
        }
        const earlier = store.conversions.get(name);
        if (earlier === undefined) store.conversions.set(name, conversion);
        kept.set(name, (earlier ?? conversion).data);
      }
      return kept;
    },
    async find(key) {
      return store.conversions.get(conversionName(key))?.data ?? null;
    },
    async findSent(queries) {
      const sent = new Map<Uuid, StoredConversion>();
      for (const { deliveryId, afterAttempt } of queries) {
        const attempts = [...(store.attempts.get(deliveryId)?.values() ?? [])]
          .filter(({ number, conversion }) => number > afterAttempt && conversion?.status === 'converted')
          .sort((a, b) => a.number - b.number);
        const note = attempts.at(-1)?.conversion;
        if (note?.status !== 'converted') continue;
        const key = { eventId: eventIdOfDelivery(deliveryId), version: note.to, converter: note.converter };
        const found = store.conversions.get(conversionName(key));
        if (found !== undefined) sent.set(deliveryId, found);
      }
      return sent;
    },
  };
}
