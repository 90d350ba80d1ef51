/** Addresses of processes, in memory. */
import type { Uuid } from '../domain/ids.ts';
import type { PeerAddress, PeerAnnouncement, PeerDirectory } from '../ports/peer-directory.ts';

export class MemoryPeerDirectory implements PeerDirectory {
  readonly #peers = new Map<Uuid, PeerAnnouncement>();

  async announce(self: PeerAnnouncement): Promise<readonly PeerAddress[]> {
    this.#peers.set(self.id, self);
    return [...this.#peers.values()].filter(
      ({ node, wireVersion }) => node !== self.node && wireVersion === self.wireVersion,
    );
  }

  async withdraw(id: Uuid): Promise<void> {
    this.#peers.delete(id);
  }
}
