/** The cookie that remembers a started sign-in until the identity provider answers. */
import type { Clock } from '../../domain/clock.ts';
import type { SecretBox } from '../../postgres/secret-box.ts';
import { cookieName, readCookie, writeCookie } from './cookies.ts';
import type { SignInAttempt } from './identity-provider.ts';

const ATTEMPT_COOKIE = 'posthorn_sign_in';
const ATTEMPT_SECONDS = 600;

export type StoredSignIn = SignInAttempt & { readonly returnTo: string };

export interface AttemptCookieOptions {
  readonly secretBox: SecretBox;
  readonly clock: Clock;
  readonly isSecure: () => boolean;
}

/** The cookie is encrypted: the code verifier must not leave this server. Null removes it. */
export function writeAttemptCookie(
  { secretBox, clock, isSecure }: AttemptCookieOptions,
  attempt: StoredSignIn | null,
): string {
  // The encrypted text contains the expiry too, because somebody who copied the cookie can ignore Max-Age.
  const expiresAt = clock.now() + ATTEMPT_SECONDS * 1000;
  const sealed = attempt && secretBox.seal(JSON.stringify({ ...attempt, expiresAt }), ATTEMPT_COOKIE);
  const value = sealed === null ? '' : `${sealed.keyId}.${sealed.ciphertext.toString('base64url')}`;
  return writeCookie(ATTEMPT_COOKIE, value, {
    maxAgeSeconds: attempt === null ? 0 : ATTEMPT_SECONDS,
    sameSite: 'Lax',
    isSecure: isSecure(),
  });
}

const MAX_USED = 10_000;

/**
 * The sign-ins that ended, so that a copied cookie cannot repeat them. Each process remembers its own; the identity provider
 * accepts a code once in any case.
 */
export class UsedAttempts {
  /** When each cookie expires, by the state of its sign-in, oldest first. */
  readonly #expiries = new Map<string, number>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns false if it was used before. */
  use({ state }: Pick<SignInAttempt, 'state'>): boolean {
    const now = this.#clock.now();
    for (const [used, expiresAt] of this.#expiries) {
      if (expiresAt > now && this.#expiries.size < MAX_USED) break;
      this.#expiries.delete(used);
    }
    if (this.#expiries.has(state)) return false;
    this.#expiries.set(state, now + ATTEMPT_SECONDS * 1000);
    return true;
  }
}

/** The sign-in that the browser started. Null: it started none, or that was more than ten minutes ago. */
export function readAttempt(
  { secretBox, clock, isSecure }: AttemptCookieOptions,
  cookie: string | undefined,
): StoredSignIn | null {
  const value = readCookie(cookie, cookieName(ATTEMPT_COOKIE, isSecure()));
  const [keyId = '', ciphertext = ''] = (value ?? '').split('.');
  try {
    const sealed = { keyId, ciphertext: Buffer.from(ciphertext, 'base64url') };
    const { expiresAt, ...attempt } = JSON.parse(secretBox.open(sealed, ATTEMPT_COOKIE)) as StoredSignIn & {
      readonly expiresAt: number;
    };
    return expiresAt > clock.now() ? attempt : null;
  } catch {
    return null;
  }
}
