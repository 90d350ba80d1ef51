import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { PEER_ADDRESS_TTL_MS, type PeerAnnouncement } from '../../src/ports/peer-directory.ts';
import type { CreateStoreFixture, StoreFixture } from './support/fixture.ts';
import { newId } from './support/ids.ts';

export function describePeerDirectory(name: string, createFixture: CreateStoreFixture): void {
  describe(`the peer directory in ${name}`, () => {
    let store: StoreFixture;
    beforeAll(async () => {
      store = await createFixture();
    });
    beforeEach(() => store.clear());
    afterAll(() => store?.close());

    const newPeer = (parts: Partial<PeerAnnouncement> = {}): PeerAnnouncement => ({
      id: newId(),
      node: newId(),
      host: '10.0.0.1',
      port: 9443,
      wireVersion: 1,
      ...parts,
    });
    const addressOf = ({ id, host, port }: PeerAnnouncement) => ({ id, host, port });
    const announce = (peer: PeerAnnouncement) => store.peers.announce(peer);

    it('returns the addresses of other nodes with the same wire version', async () => {
      const [first, second] = [newPeer(), newPeer({ host: 'node-2.internal', port: 1234 })];
      const [sibling, older] = [newPeer({ node: first.node }), newPeer({ wireVersion: 0 })];
      expect(await announce(first)).toEqual([]);
      for (const peer of [second, sibling, older]) await announce(peer);
      expect(await announce(first)).toEqual([addressOf(second)]);
      expect(await announce(older)).toEqual([]);
    });

    it('returns the latest address of a process once', async () => {
      const [first, second] = [newPeer(), newPeer()];
      await announce(second);
      const moved = { ...second, host: '10.0.0.2', port: 1 };
      await announce(moved);
      expect(await announce(first)).toEqual([addressOf(moved)]);
    });

    it('does not return a process that has withdrawn, which may do so twice', async () => {
      const [first, second] = [newPeer(), newPeer()];
      await announce(second);
      await store.peers.withdraw(second.id);
      await store.peers.withdraw(second.id);
      expect(await announce(first)).toEqual([]);
    });

    it('does not return a process that crashed, once its address has expired', async () => {
      const [first, crashed] = [newPeer(), newPeer()];
      await announce(crashed);
      await store.agePeer(crashed.id, PEER_ADDRESS_TTL_MS / 2);
      expect(await announce(first)).toEqual([addressOf(crashed)]);
      await store.agePeer(crashed.id, PEER_ADDRESS_TTL_MS / 2 + 1_000);
      expect(await announce(first)).toEqual([]);
    });

    it('returns a process again that was paused until its address had expired', async () => {
      const [first, paused] = [newPeer(), newPeer()];
      await announce(paused);
      await store.agePeer(paused.id, PEER_ADDRESS_TTL_MS + 1_000);
      await announce(first);
      expect(await announce(paused)).toEqual([addressOf(first)]);
      expect(await announce(first)).toEqual([addressOf(paused)]);
    });

    it('keeps an address whose answer was lost, and takes it once when it is announced again', async () => {
      const [first, second] = [newPeer(), newPeer()];
      await store.unreliable.loseNextAnswer();
      await expect(store.unreliable.peers.announce(second)).rejects.toMatchObject({
        failure: 'outcome_unknown',
      });
      expect(await announce(first)).toEqual([addressOf(second)]);
      expect(await store.unreliable.peers.announce(second)).toEqual([addressOf(first)]);
      expect(await announce(first)).toEqual([addressOf(second)]);
    });
  });
}
