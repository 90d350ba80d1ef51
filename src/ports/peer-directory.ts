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

export interface PeerDirectory {
  /** Stores the address for a short time, and returns those of other nodes with the same wire version. */
  announce(self: PeerAnnouncement): Promise<readonly PeerAddress[]>;
  withdraw(id: Uuid): Promise<void>;
}
