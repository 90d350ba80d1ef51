/** What the process and a converter thread tell each other. Types only: the thread loads nothing of Posthorn. */
import type { MessagePort } from 'node:worker_threads';

/** A module as it was when the configuration was first loaded. Threads that start later get the same text. */
export interface LoadedModule {
  readonly url: string;
  readonly format: string;
  readonly source: string;
}

export interface ThreadSetup {
  /** Null once the thread has taken it: converters must not find it. */
  port: MessagePort | null;
  /** The number of the conversion that runs now. 0: none. */
  readonly running: Int32Array;
  readonly configUrl: string;
  readonly modules: readonly LoadedModule[];
  readonly maxResultBytes: number;
}

export interface DeclaredConverter {
  readonly type: string;
  readonly key: string;
  readonly isFunction: boolean;
}

export interface ConversionOrder {
  readonly id: number;
  readonly type: string;
  /** The keys of the steps, in order. */
  readonly keys: readonly string[];
  readonly data: Uint8Array;
}

export type ThreadMessage =
  | {
      readonly kind: 'loaded';
      readonly declared: readonly DeclaredConverter[];
      readonly modules: readonly LoadedModule[];
      /** Of the text of all modules. */
      readonly hash: string;
    }
  /** The file cannot be loaded or has no converters. */
  | { readonly kind: 'refused'; readonly message: string }
  | {
      readonly kind: 'converted';
      readonly id: number;
      readonly data: Uint8Array;
      readonly usedBytes: number;
    }
  | { readonly kind: 'failed'; readonly id: number; readonly message: string; readonly usedBytes: number }
  /** A timer or promise of an earlier conversion threw. The thread is no longer trusted. */
  | { readonly kind: 'spoiled' };
