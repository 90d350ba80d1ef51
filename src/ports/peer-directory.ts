/** Tells the processes of all nodes under which address each of them can be reached. */
import type { Uuid } from '../domain/ids.ts';

export interface PeerAddress {
  /** Identifies the process. A process that starts again has another id. */
  readonly id: Uuid;
  readonly host: string;
  readonly port: number;
}

export interface PeerAnnouncement extends PeerAddress {
  /** The node of the process. Processes of one node do not connect through this directory. */
  readonly node: string;
  /** Only processes that write the same messages connect. */
  readonly wireVersion: number;
}

/** An address expires if its process does not announce it again within this time. */
export const PEER_ADDRESS_TTL_MS = 15_000;

export interface PeerDirectory {
  /**
   * Stores the address for `PEER_ADDRESS_TTL_MS`. Returns the addresses of other nodes that have the same wire version and
   * have not expired. Throws `StoreError`; announcing again is always safe.
   */
  announce(self: PeerAnnouncement): Promise<readonly PeerAddress[]>;
  /** Removes the address of a process that stops. Does nothing if there is none. Throws `StoreError`. */
  withdraw(id: Uuid): Promise<void>;
}
