/**
 * Tells the other workers that something was accepted for endpoints of theirs: one NOTIFY for many commits, after
 * them and on a connection of its own (inside every commit it would serialize them all). Only a hint: a sweep finds
 * what a lost one meant.
 */
import type { Uuid } from '../domain/ids.ts';
import type { Pool } from '../postgres/database.ts';

export const WAKE_CHANNEL = 'posthorn_wake';
const IDS_PER_MESSAGE = 300; // 300 · 23 characters stay below PostgreSQL's 8,000 bytes

/** Before the ids: look further back than usual, for what was committed a while ago and perhaps never announced. */
const LOOK_BACK = '*';
type WakeWant = 'recent' | 'sweep';

export function encodeWake(ids: readonly Uuid[], want: WakeWant = 'recent'): string {
  const prefix = want === 'sweep' ? LOOK_BACK : '';
  return prefix + ids.map((id) => Buffer.from(id.replaceAll('-', ''), 'hex').toString('base64url')).join(',');
}

export const wantOfWake = (message: string): WakeWant => (message.startsWith(LOOK_BACK) ? 'sweep' : 'recent');

export function decodeWake(message: string): Uuid[] {
  return message
    .replace(LOOK_BACK, '')
    .split(',')
    .flatMap((text) => {
      const hex = Buffer.from(text, 'base64url').toString('hex');
      if (hex.length !== 32) return [];
      return [
        `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`,
      ];
    });
}

export class WakeSender {
  readonly #pool: Pool;
  readonly #failed: (error: unknown) => void;
  #waiting = new Map<Uuid, WakeWant>();
  #running: Promise<void> | null = null;

  constructor(pool: Pool, failed: (error: unknown) => void) {
    this.#pool = pool;
    this.#failed = failed;
  }

  wake(endpointId: Uuid, want: WakeWant = 'recent'): void {
    if (want === 'sweep' || !this.#waiting.has(endpointId)) this.#waiting.set(endpointId, want);
    this.#running ??= this.#run();
  }

  async idle(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    // Lets the rest of the batch be added first.
    await Promise.resolve();
    while (this.#waiting.size > 0) {
      const waiting = this.#waiting;
      this.#waiting = new Map();
      const messages: string[] = [];
      for (const want of ['recent', 'sweep'] as const) {
        const ids = [...waiting].filter((entry) => entry[1] === want).map(([id]) => id);
        for (let i = 0; i < ids.length; i += IDS_PER_MESSAGE)
          messages.push(encodeWake(ids.slice(i, i + IDS_PER_MESSAGE), want));
      }
      try {
        await this.#pool.query({
          name: 'wake',
          text: `select pg_notify('${WAKE_CHANNEL}', message) from unnest($1::text[]) as message`,
          values: [messages],
        });
      } catch (error) {
        this.#failed(error);
      }
    }
    this.#running = null;
  }
}
