/** Addresses of processes, in memory. */
import { type Clock, systemClock } from '../domain/clock.ts';
import type { Uuid } from '../domain/ids.ts';
import {
  PEER_ADDRESS_TTL_MS,
  type PeerAddress,
  type PeerAnnouncement,
  type PeerDirectory,
} from '../ports/peer-directory.ts';

export class MemoryPeerDirectory implements PeerDirectory {
  readonly #clock: Pick<Clock, 'now'>;
  readonly peers = new Map<Uuid, PeerAnnouncement & { seenAt: number }>();

  constructor(clock: Pick<Clock, 'now'> = systemClock) {
    this.#clock = clock;
  }

  async announce(self: PeerAnnouncement): Promise<readonly PeerAddress[]> {
    const now = this.#clock.now();
    for (const { id, seenAt } of this.peers.values())
      if (seenAt < now - PEER_ADDRESS_TTL_MS) this.peers.delete(id);
    this.peers.set(self.id, { ...self, seenAt: now });
    return [...this.peers.values()]
      .filter(({ node, wireVersion }) => node !== self.node && wireVersion === self.wireVersion)
      .map(({ id, host, port }) => ({ id, host, port }));
  }

  async withdraw(id: Uuid): Promise<void> {
    this.peers.delete(id);
  }
}
