export const REDACTED_LINK = '[redacted]';

/**
 * Returns the target of a notifier as history and logs may show it: the URL of a chat without its path, which is a
 * credential, or the first letter and the domain of an e-mail address.
 */
export function maskTarget(url: string): string {
  if (url.startsWith('mailto:')) return `mailto:${maskAddress(addressOf(url))}`;
  const origin = URL.parse(url)?.origin;
  return origin === undefined ? REDACTED_LINK : `${origin}/${REDACTED_LINK}`;
}

/** `jane@example.com` becomes `j…@example.com`. */
export function maskAddress(address: string): string {
  const at = address.lastIndexOf('@');
  return at < 1 ? REDACTED_LINK : `${[...address][0]}…${address.slice(at)}`;
}

export const addressOf = (mailto: string): string => decodeURIComponent(mailto.slice('mailto:'.length));
