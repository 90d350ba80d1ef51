import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { EventContent } from '../../src/domain/event.ts';
import { deliveryIdOf } from '../../src/domain/ids.ts';
import type { NewDelivery } from '../../src/ports/event-store.ts';
import type { Commit, CommittedDelivery, HandOver, HandOverRoute } from '../../src/ports/hand-over.ts';
import { eventually } from '../support/eventually.ts';
import { endpointIdOf, newEventId } from './support/ids.ts';

export interface HandOverFixture {
  /** The hand-over of one more process. */
  create(): HandOver;
  close(): Promise<void>;
}

interface Member {
  readonly handOver: HandOver;
  readonly received: { readonly deliveries: readonly CommittedDelivery[]; readonly commit: Commit }[];
  shards: number[];
}

export function describeHandOver(name: string, createFixture: () => Promise<HandOverFixture>): void {
  describe(`the hand-over in ${name}`, () => {
    let fixture: HandOverFixture;
    let members: Member[] = [];
    beforeEach(async () => {
      fixture = await createFixture();
    });
    afterEach(async () => {
      await Promise.all(members.map(({ handOver }) => handOver.stop()));
      members = [];
      await fixture.close();
    });

    const join = async (...shards: number[]): Promise<Member> => {
      const member: Member = { handOver: fixture.create(), received: [], shards };
      member.handOver.onReceived((deliveries, commit) => member.received.push({ deliveries, commit }));
      await member.handOver.start(() => member.shards);
      members.push(member);
      return member;
    };
    const commit: Commit = { sentAt: 1_800_000_000_123, endpointVersion: 7 };
    const newDelivery = (shard: number): NewDelivery => ({
      id: deliveryIdOf(newEventId(), 3),
      endpointId: endpointIdOf(shard),
      dueAt: null,
      fifo: false,
    });
    const newContent = (parts: Partial<EventContent> = {}): EventContent => ({
      id: newEventId(),
      tenant: 'acme',
      type: 'order.paid',
      data: Buffer.from('{"a":1}'),
      idempotencyKey: null,
      schemaVersion: null,
      headers: null,
      ...parts,
    });
    const offer = ({ handOver }: Member, shard: number): HandOverRoute | null =>
      handOver.offer(shard, newDelivery(shard), newContent(), commit);
    /** Waits, because other processes learn of an announcement a moment later. */
    const offered = (from: Member, shard: number) =>
      eventually(`a process that owns shard ${shard} is known`, () => offer(from, shard));
    const deliveriesOf = ({ received }: Member) => received.flatMap(({ deliveries }) => deliveries);

    it('hands a delivery with its payload and its commit over to the process that owns the shard', async () => {
      const [from, owner, other] = [await join(1), await join(2), await join(3)];
      await offered(from, 2);
      const content = {
        data: Buffer.from([0x22, 0xc3, 0xa9, 0x22]),
        idempotencyKey: 'k',
        schemaVersion: '2',
        headers: { 'x-a': 'b' },
      };
      const delivery = { ...newDelivery(2), dueAt: 1_800_000_000_500, fifo: true };
      const event = newContent(content);
      expect(from.handOver.offer(2, delivery, event, commit)).not.toBeNull();
      await eventually('the delivery arrives', () => deliveriesOf(owner).length === 2);
      expect(owner.received.at(-1)!.commit).toEqual(commit);
      expect(deliveriesOf(owner).at(-1)).toEqual({ delivery, event });
      expect([...from.received, ...other.received]).toEqual([]);
    });

    it('refuses a delivery if no other process owns its shard', async () => {
      const [from, other] = [await join(1), await join(2)];
      await offered(from, 2);
      expect(offer(from, 1)).toBeNull();
      expect(offer(from, 9)).toBeNull();
      await eventually('the first arrives', () => other.received.length === 1);
    });

    it('uses the latest announcement of a shard', async () => {
      const [from, first, second] = [await join(), await join(5), await join()];
      await offered(from, 5);
      second.shards = [5];
      second.handOver.announceShards();
      await eventually('the new owner gets it', () => offer(from, 5) && second.received.length > 0);
      const before = deliveriesOf(first).length;
      await offered(from, 5);
      await eventually('the delivery arrives', () => second.received.length > 1);
      expect(deliveriesOf(first).length).toBe(before);
      second.shards = [];
      second.handOver.announceShards();
      await eventually('no process owns the shard', () => !offer(from, 5));
    });

    it('refuses a delivery after its owner has stopped', async () => {
      const [from, owner] = [await join(), await join(8)];
      await offered(from, 8);
      await owner.handOver.stop();
      await eventually('no process owns the shard', () => !offer(from, 8));
    });

    it('hands many large payloads over in order, each with its own commit', async () => {
      const [from, owner] = [await join(), await join(4)];
      await offered(from, 4);
      await eventually('the first arrives', () => deliveriesOf(owner).length === 1);
      const sent = Array.from({ length: 20 }, (_, i) => ({
        delivery: newDelivery(4),
        event: newContent({ data: Buffer.alloc(50_000, i) }),
        commit: { sentAt: 1_800_000_000_000 + i, endpointVersion: i },
      }));
      for (const each of sent)
        expect(from.handOver.offer(4, each.delivery, each.event, each.commit)).not.toBeNull();
      await eventually('all arrive', () => deliveriesOf(owner).length === 21);
      const got = owner.received
        .slice(1)
        .flatMap((batch) => batch.deliveries.map((each) => ({ ...each, commit: batch.commit })));
      expect(got).toEqual(sent);
    });
  });
}
