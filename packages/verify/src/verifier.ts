/**
 * Verifying one request:
 *
 *   headers ─▶ claim ─▶ signature ─▶ time ─▶ JSON ─▶ VerifiedWebhook
 *
 * The signature comes before the time: "too old" is then only ever said of what the sender really signed.
 * What is handed on (id, time, payload) is taken from what was signed, never from a header that anybody could add.
 */
import { type Bytes, concat, toBytes, toHex, toText } from './bytes.ts';
import { VerificationError } from './errors.ts';
import type { HeadersLike } from './headers.ts';
import { type Key, literalKey, standardKey } from './keys.ts';
import { DEFAULT_NAMES, type Profile, readClaim } from './profiles.ts';

export interface VerifierOptions {
  /**
   * The endpoint's secret (`whsec_…`) or public key (`whpk_…`). Several while you change over: any of them may fit.
   */
  readonly secret: string | readonly string[];
  /** How the endpoint signs. Default: `standard`, for both `standard` and `standard-ed25519`. */
  readonly profile?: Profile;
  /** How far the sender's clock and yours may be apart. Default: 300. */
  readonly toleranceSeconds?: number;
  /** If the endpoint was given another signature header or prefix. */
  readonly header?: string;
  readonly prefix?: string;
  /** Milliseconds since 1970. For tests. */
  readonly now?: () => number;
}

/** The body as it came: bytes or the text that they were. Never the parsed object. */
export type RawBody = string | Uint8Array | ArrayBuffer;

export interface VerifiedWebhook<Payload = unknown> {
  /**
   * The same in every attempt and replay: what to deduplicate by. Signed: `webhook-id`, or the `id` in the body, or,
   * where the sender has neither, a digest of the body.
   */
  readonly id: string;
  /** The type of the event, if the body names one. */
  readonly type: string | null;
  /** When this attempt was signed; null for profiles that sign no time (`hex`, `github`). */
  readonly timestamp: Date | null;
  readonly payload: Payload;
  /** The bytes that were signed. */
  readonly body: Uint8Array;
}

export interface Verifier {
  /** Resolves with the webhook, or rejects with a VerificationError that says why not. */
  verify<Payload = unknown>(body: RawBody, headers: HeadersLike): Promise<VerifiedWebhook<Payload>>;
}

const DEFAULT_TOLERANCE_SECONDS = 300;

export function createVerifier(options: VerifierOptions): Verifier {
  const { profile = 'standard', toleranceSeconds = DEFAULT_TOLERANCE_SECONDS, now = Date.now } = options;
  const defaults = DEFAULT_NAMES[profile];
  if (defaults === undefined) throw new TypeError(`There is no profile ${JSON.stringify(profile)}.`);
  if (!(toleranceSeconds > 0)) throw new TypeError('toleranceSeconds must be more than 0.');
  const names = {
    header: (options.header ?? defaults.header).toLowerCase(),
    prefix: options.prefix ?? defaults.prefix,
  };
  const secrets = typeof options.secret === 'string' ? [options.secret] : options.secret;
  if (!Array.isArray(secrets) || secrets.length === 0) throw new TypeError('At least one secret is needed.');
  const keys: Key[] = secrets.map(profile === 'standard' ? standardKey : literalKey);

  return {
    async verify<Payload>(body: RawBody, headers: HeadersLike): Promise<VerifiedWebhook<Payload>> {
      const bytes = rawBytes(body);
      const { before, signatures, id, timestampSeconds } = readClaim(profile, names, headers);
      if (!keys.some((key) => signatures[key.kind].length > 0))
        throw new VerificationError('unsupported_signature', `Looked at: ${names.header}.`);
      const content = concat(before, bytes);
      const fits = await Promise.all(keys.map((key) => key.verify(content, signatures[key.kind])));
      if (!fits.includes(true)) throw new VerificationError('signature_mismatch');
      if (timestampSeconds !== null) checkTime(timestampSeconds, now() / 1000, toleranceSeconds);
      const payload = parse(bytes);
      const { id: bodyId, type } = envelopeOf(payload);
      return {
        id: id ?? bodyId ?? `sha256:${toHex(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)))}`,
        type,
        timestamp: timestampSeconds === null ? null : new Date(timestampSeconds * 1000),
        payload: payload as Payload,
        body: bytes,
      };
    },
  };
}

function rawBytes(body: RawBody): Bytes {
  if (typeof body === 'string') return toBytes(body);
  if (body instanceof Uint8Array) return body as Bytes;
  // By its tag: an ArrayBuffer of another realm (a test runner, a sandbox) is no instance of ours.
  if (Object.prototype.toString.call(body) === '[object ArrayBuffer]') return new Uint8Array(body);
  throw new VerificationError(
    'body_already_parsed',
    'Pass the raw body: a string, a Uint8Array or an ArrayBuffer.',
  );
}

function checkTime(signedAt: number, now: number, tolerance: number): void {
  if (now - signedAt > tolerance)
    throw new VerificationError('timestamp_too_old', `Signed ${Math.round(now - signedAt)} seconds ago.`);
  if (signedAt - now > tolerance)
    throw new VerificationError('timestamp_too_new', `Signed ${Math.round(signedAt - now)} seconds ahead.`);
}

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(toText(bytes));
  } catch {
    throw new VerificationError('malformed_body');
  }
}

function envelopeOf(payload: unknown): { id: string | null; type: string | null } {
  const { id, type } = (typeof payload === 'object' && payload !== null ? payload : {}) as {
    id?: unknown;
    type?: unknown;
  };
  return {
    id: typeof id === 'string' && id !== '' ? id : null,
    type: typeof type === 'string' ? type : null,
  };
}
