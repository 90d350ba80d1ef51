import type { NewEvent } from '../../src/domain/event.ts';
import { deliveryIdOf, type Uuid } from '../../src/domain/ids.ts';
import type { AcceptAnswer } from '../../src/ingest/index.ts';

/** A request of a producer, and its answer. */
export class Publication {
  readonly event: NewEvent;
  accepted: Pick<AcceptAnswer, 'id' | 'deliveries'> | null = null;
  error: unknown = null;
  answeredAt: number | null = null;

  constructor(event: NewEvent) {
    this.event = event;
  }

  recordAccepted(accepted: Pick<AcceptAnswer, 'id' | 'deliveries'>, now: number): void {
    this.accepted = accepted;
    this.answeredAt = now;
  }

  recordError(error: unknown, now: number): void {
    this.error = error;
    this.answeredAt = now;
  }

  /** Throws unless the event was accepted. */
  get deliveryIds(): Uuid[] {
    if (this.accepted === null)
      throw new Error('The event was not accepted (yet).', { cause: this.error ?? undefined });
    const { id, deliveries } = this.accepted;
    return Array.from({ length: deliveries }, (_, ordinal) => deliveryIdOf(id, ordinal));
  }

  /** The only delivery of an event for one endpoint. */
  get deliveryId(): Uuid {
    return this.deliveryIds[0]!;
  }
}
