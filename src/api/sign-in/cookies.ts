/** The cookies of the sign-in. Scripts cannot read them. */

export interface CookieOptions {
  readonly maxAgeSeconds: number;
  /** `Lax`: also sent when another site leads here, such as the identity provider. */
  readonly sameSite: 'Strict' | 'Lax';
  /** False only without TLS, on this machine. */
  readonly isSecure: boolean;
}

/** With TLS the prefix keeps other hosts of the domain from setting the cookie. */
export const cookieName = (name: string, isSecure: boolean): string => (isSecure ? `__Host-${name}` : name);

export function writeCookie(name: string, value: string, options: CookieOptions): string {
  const { maxAgeSeconds, sameSite, isSecure } = options;
  const attributes = [`Max-Age=${maxAgeSeconds}`, 'Path=/', 'HttpOnly', `SameSite=${sameSite}`];
  if (isSecure) attributes.push('Secure');
  return [`${cookieName(name, isSecure)}=${value}`, ...attributes].join('; ');
}

/** The value of a cookie. Null: it is missing, or sent twice. */
export function readCookie(header: string | undefined, name: string): string | null {
  const found = (header ?? '')
    .split(';')
    .map((part) => part.trim())
    .filter((part) => part.startsWith(`${name}=`));
  return found.length === 1 ? found[0]!.slice(name.length + 1) : null;
}
