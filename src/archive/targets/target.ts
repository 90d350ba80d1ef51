/** Where an archive is stored. Names are relative, with `/`. Errors that an operator can fix are `ArchiveError`s. */
export interface ArchiveTarget {
  readonly url: string;
  /** Throws if the archive cannot be reached, or is certainly not writable. Changes nothing. */
  check(): Promise<void>;
  /** Stores a local file, and replaces what has this name. Readers see the old file or the new one, never a part of it. */
  put(name: string, path: string): Promise<void>;
  putText(name: string, text: string): Promise<void>;
  /** Null: there is no such file. */
  readText(name: string): Promise<string | null>;
  /** The size of a file in bytes. Null: there is no such file. */
  sizeOf(name: string): Promise<number | null>;
  /** Calls `read` with the path of the file, or of a copy that is deleted afterwards. Throws if there is no such file. */
  withFile<T>(name: string, read: (path: string) => Promise<T>): Promise<T>;
  /** All names that begin with `prefix`, which ends in `/` or is empty. */
  list(prefix: string): Promise<string[]>;
  /** Deletes a file, if it is there. */
  remove(name: string): Promise<void>;
  /** A path for a file that is being written, close to where `put` will store it. */
  spoolPath(): Promise<string>;
}
