/**
 * Notes about what happened to endpoints and deliveries. The commit that makes something happen also writes the note;
 * upkeep turns notes into operational events.
 */
import type { DisabledReason } from '../domain/endpoint.ts';
import type { Uuid } from '../domain/ids.ts';
import type { NoticeGroup, NoticeType, PendingNotice } from '../domain/notices.ts';
import type { OperationalType } from '../domain/operational.ts';

export interface OperationalNote {
  readonly seq: string;
  /** Identifies what happened if the same note can be written twice. Null if it cannot. */
  readonly id: Uuid | null;
  readonly kind: OperationalType;
  readonly endpointId: Uuid;
  readonly at: number;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** What operational events say about an endpoint. */
export interface NotedEndpoint {
  readonly id: Uuid;
  readonly tenant: string;
  readonly url: string;
  readonly description: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly enabled: boolean;
  readonly disabledReason: DisabledReason | null;
}

export interface OperationalEvent {
  readonly id: Uuid;
  readonly tenant: string;
  readonly type: OperationalType | NoticeType;
  readonly data: Readonly<Record<string, unknown>>;
  /** Null: all endpoints that subscribe to the type. */
  readonly endpointIds: readonly Uuid[] | null;
}

export interface OldestWaiting {
  readonly deliveryId: Uuid;
  readonly endpointId: Uuid;
  readonly tenant: string;
  /** When the delivery became due, in milliseconds since the epoch. */
  readonly since: number;
}

/** Why the archive cannot be written. */
export interface ArchiveFailure {
  readonly since: number;
  /** Null: the archive as a whole. */
  readonly partition: string | null;
  readonly error: string;
}

/** The notices that become one message. */
export interface DueDigest {
  readonly notifierId: Uuid;
  readonly tenant: string;
  /** When the first of them was made, in milliseconds since the epoch. */
  readonly since: number;
  readonly groups: readonly NoticeGroup[];
}

/** An event type or a version that has passed its sunset. */
export interface PassedSunset {
  readonly eventType: string;
  /** Null: the event type itself. */
  readonly version: string | null;
  readonly sunsetAt: number;
}

/** The sunsets that an endpoint or a notifier subscribes to. No other sunset is published or marked. */
export interface SunsetKinds {
  readonly types: boolean;
  readonly versions: boolean;
}

/** One round. All its calls belong to one commit. */
export interface OperationalRound {
  /**
   * Removes up to `maxNotes` notes and returns them, oldest first. Leaves notes about dead deliveries of an endpoint
   * whose state `deliveryDead` was set less than `deadWindowMs` ago.
   */
  takeNotes(deadWindowMs: number, maxNotes: number): Promise<readonly OperationalNote[]>;
  /** The version of the endpoints now, which may be newer than what this round has read so far. */
  readEndpointVersion(): Promise<number>;
  /** Deleted endpoints included. */
  loadEndpoints(ids: readonly Uuid[]): Promise<ReadonlyMap<Uuid, NotedEndpoint>>;

  /** States say what has been published: an open circuit, a passed threshold. An empty subject: the deployment. */
  hasState(kind: OperationalType, subject: string): Promise<boolean>;
  setStates(kind: OperationalType, subjects: readonly string[]): Promise<void>;
  /** Returns whether the state was set. */
  clearState(kind: OperationalType, subject: string): Promise<boolean>;

  /** Counts dead letters up to `max`. Operational events do not count. */
  countDeadLetters(max: number): Promise<number>;
  /** The delivery that has been due for longest, of endpoints that are sent to. Operational events do not count. */
  findOldestWaiting(): Promise<OldestWaiting | null>;

  /** Null: the archive can be written, or there is none. */
  readArchiveFailure(): Promise<ArchiveFailure | null>;
  /** Keeps notices until the window of their notifier ends. The first one begins the window. */
  addNotices(notices: readonly PendingNotice[]): Promise<void>;
  /** Removes and returns the notices of all notifiers whose window has ended. */
  takeDigests(windowMs: number): Promise<readonly DueDigest[]>;
  /** Returns event types and versions that passed their sunset and were not returned before. */
  takeSunsets(kinds: SunsetKinds): Promise<readonly PassedSunset[]>;

  /** Puts events into the outbox, from where each becomes an event exactly once. */
  publish(events: readonly OperationalEvent[]): Promise<void>;
}

export interface OperationalStore {
  /** Whether there are notes, and notifiers whose window has ended. */
  findWork(noticeWindowMs: number): Promise<{ readonly notes: boolean; readonly digests: boolean }>;
  /**
   * Runs a round unless another process is running one. Commits if `work` resolves with true; otherwise, or if it
   * throws, nothing has changed. Returns false only if `work` did.
   */
  runRound(work: (round: OperationalRound) => Promise<boolean>): Promise<boolean>;
}
