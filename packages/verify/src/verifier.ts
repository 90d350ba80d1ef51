/**
 * The verification of one request:
 *
 *   headers ─▶ claim ─▶ signature ─▶ time ─▶ JSON ─▶ VerifiedWebhook
 *
 * The signature is checked before the time, so that "too old" is only reported for requests that the sender signed.
 * Id, time and payload come from the signed content, never from a header that anybody could add.
 */
import { type Bytes, concat, toBytes, toHex, toText } from './bytes.ts';
import { VerificationError } from './errors.ts';
import type { HeadersLike } from './headers.ts';
import { createLiteralKey, createStandardKey, type Key } from './keys.ts';
import { DEFAULT_NAMES, type Profile, readClaim } from './profiles.ts';

export interface VerifierOptions {
  /**
   * The endpoint's secret (`whsec_…`) or public key (`whpk_…`). During a rotation, a list: one of them must match.
   */
  readonly secret: string | readonly string[];
  /** The endpoint's signature profile. Default: `standard`, which also verifies `standard-ed25519`. */
  readonly profile?: Profile;
  /** How far the sender's clock and yours may differ. Default: 300. */
  readonly toleranceSeconds?: number;
  /** The signature header and prefix, if the endpoint does not use the defaults of its profile. */
  readonly header?: string;
  readonly prefix?: string;
  /** The current time in milliseconds, for tests. */
  readonly now?: () => number;
}

/** The unparsed body: bytes, or their text. */
export type RawBody = string | Uint8Array | ArrayBuffer;

export interface VerifiedWebhook<Payload = unknown> {
  /**
   * The same in every attempt and replay: use it to deduplicate. It is signed: the `webhook-id`, or the `id` in the body,
   * or, if there is neither, a digest of the body.
   */
  readonly id: string;
  /** The event type in the body, if there is one. */
  readonly type: string | null;
  /** When this attempt was signed; null for the profiles that sign no time (`hex`, `github`). */
  readonly timestamp: Date | null;
  readonly payload: Payload;
  /** The raw body. */
  readonly body: Uint8Array;
}

export interface Verifier {
  /** Verifies the body and returns the webhook. Throws `VerificationError`, whose `reason` says why. */
  verify<Payload = unknown>(body: RawBody, headers: HeadersLike): Promise<VerifiedWebhook<Payload>>;
}

const DEFAULT_TOLERANCE_SECONDS = 300;

/** Creates a verifier. Throws a TypeError if an option is invalid. */
export function createVerifier(options: VerifierOptions): Verifier {
  const { profile = 'standard', toleranceSeconds = DEFAULT_TOLERANCE_SECONDS, now = Date.now } = options;
  const defaults = DEFAULT_NAMES[profile];
  if (defaults === undefined)
    throw new TypeError(
      `profile must be one of ${Object.keys(DEFAULT_NAMES).join(', ')}, but is ${JSON.stringify(profile)}.`,
    );
  if (!(toleranceSeconds > 0)) throw new TypeError('toleranceSeconds must be more than 0.');
  const names = {
    header: (options.header ?? defaults.header).toLowerCase(),
    prefix: options.prefix ?? defaults.prefix,
  };
  const secrets = typeof options.secret === 'string' ? [options.secret] : options.secret;
  if (!Array.isArray(secrets) || secrets.length === 0)
    throw new TypeError('secret must be a string or a list with at least one string.');
  const keys: Key[] = secrets.map(profile === 'standard' ? createStandardKey : createLiteralKey);

  return {
    async verify<Payload>(body: RawBody, headers: HeadersLike): Promise<VerifiedWebhook<Payload>> {
      const bytes = toRawBytes(body);
      const { signedPrefix, signatures, id, timestampSeconds } = readClaim(profile, names, headers);
      if (!keys.some((key) => signatures[key.kind].length > 0))
        throw new VerificationError('unsupported_signature', `Header: ${names.header}.`);
      const content = concat(signedPrefix, bytes);
      const matches = await Promise.all(keys.map((key) => key.verify(content, signatures[key.kind])));
      if (!matches.includes(true)) throw new VerificationError('signature_mismatch');
      if (timestampSeconds !== null) checkTime(timestampSeconds, now() / 1000, toleranceSeconds);
      const payload = parseJson(bytes);
      const { id: bodyId, type } = readEnvelope(payload);
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

function toRawBytes(body: RawBody): Bytes {
  if (typeof body === 'string') return toBytes(body);
  if (body instanceof Uint8Array) return body as Bytes;
  // Not with instanceof, which is false for an ArrayBuffer of another realm (a test runner, a sandbox).
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
    throw new VerificationError(
      'timestamp_too_new',
      `Signed ${Math.round(signedAt - now)} seconds in the future.`,
    );
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(toText(bytes));
  } catch {
    throw new VerificationError('malformed_body');
  }
}

function readEnvelope(payload: unknown): { id: string | null; type: string | null } {
  const { id, type } = (typeof payload === 'object' && payload !== null ? payload : {}) as {
    id?: unknown;
    type?: unknown;
  };
  return {
    id: typeof id === 'string' && id !== '' ? id : null,
    type: typeof type === 'string' ? type : null,
  };
}
