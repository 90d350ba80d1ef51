/** The clock of the PostgreSQL under test, which a run can set. Needs a C compiler and a preloaded library (Linux). */
import { execFile } from 'node:child_process';
import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const SOURCE = fileURLToPath(new URL('./clock-shim.c', import.meta.url));
const DAY_MS = 86_400_000;
/** How far a run sets the clock. */
export const CLOCK_STEP_MS = 40 * DAY_MS;

export class DatabaseTime {
  /** For the server process. Empty if the clock cannot be set. */
  readonly environment: Readonly<Record<string, string>>;
  readonly #file: string | null;

  private constructor(file: string | null, library: string | null) {
    this.#file = file;
    this.environment =
      file === null || library === null ? {} : { LD_PRELOAD: library, CHAOS_CLOCK_OFFSET: file };
  }

  /** Compiles the library into `directory`. Without a compiler the clock cannot be set. */
  static async create(directory: string): Promise<DatabaseTime> {
    const [library, file] = [join(directory, 'clock-shim.so'), join(directory, 'clock-offset')];
    try {
      await promisify(execFile)('cc', ['-O1', '-shared', '-fPIC', '-o', library, SOURCE, '-ldl']);
    } catch {
      return new DatabaseTime(null, null);
    }
    await writeFile(file, Buffer.alloc(8), { mode: 0o644 });
    return new DatabaseTime(file, library);
  }

  get canBeSet(): boolean {
    return this.#file !== null;
  }

  /** Sets the clock ahead of the machine's by this much, or behind if negative. */
  async set(aheadMs: number): Promise<void> {
    const value = Buffer.alloc(8);
    value.writeBigInt64LE(BigInt(aheadMs));
    // In place: the server has mapped this file.
    const file = await open(this.#file!, 'r+');
    await file.write(value, 0, 8, 0);
    await file.close();
  }
}

/** A time that the database recorded while its clock was wrong, on the machine's clock. */
export function correctTime(at: number, now = Date.now()): number {
  if (at - now > CLOCK_STEP_MS / 2) return at - CLOCK_STEP_MS;
  if (at > 0 && now - at > CLOCK_STEP_MS / 2) return at + CLOCK_STEP_MS;
  return at;
}
