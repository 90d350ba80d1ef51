/** What the server and a converter process tell each other. Types only: the converter process loads nothing of Posthorn. */

/** A module as it was when the configuration was first loaded. Processes that start later get the same text. */
export interface LoadedModule {
  readonly url: string;
  readonly format: string;
  readonly source: string;
}

/** The first message to a converter process. All others are a `ConversionOrder`. */
export interface ProcessSetup {
  readonly configUrl: string;
  readonly modules: readonly LoadedModule[];
  readonly maxResultBytes: number;
  /** The process ends itself if its memory grows by more than this after the configuration is loaded. */
  readonly maxGrowthBytes: number;
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

export type ProcessMessage =
  | {
      readonly kind: 'loaded';
      readonly declared: readonly DeclaredConverter[];
      readonly modules: readonly LoadedModule[];
      /** The hash of the text of all modules. */
      readonly hash: string;
    }
  /** The file cannot be loaded or has no converters. */
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'begun'; readonly id: number }
  | {
      readonly kind: 'converted';
      readonly id: number;
      readonly data: Uint8Array;
      readonly usedBytes: number;
    }
  | { readonly kind: 'failed'; readonly id: number; readonly message: string; readonly usedBytes: number }
  /** A timer or promise of an earlier conversion threw. The process is no longer trusted. */
  | { readonly kind: 'spoiled' };
