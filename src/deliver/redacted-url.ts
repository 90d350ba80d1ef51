export const REDACTED_LINK = '[redacted]';

/**
 * Where a notifier's messages go, as history and logs may show it: the URL of a chat without its path, which is a credential,
 * or an e-mail address of which one letter and the domain are left.
 */
export function maskedTarget(url: string): string {
  if (url.startsWith('mailto:')) return `mailto:${maskedAddress(addressOf(url))}`;
  const origin = URL.parse(url)?.origin;
  return origin === undefined ? REDACTED_LINK : `${origin}/${REDACTED_LINK}`;
}

/** `jane@example.com` becomes `j…@example.com`. */
export function maskedAddress(address: string): string {
  const at = address.lastIndexOf('@');
  return at < 1 ? REDACTED_LINK : `${[...address][0]}…${address.slice(at)}`;
}

export const addressOf = (mailto: string): string => decodeURIComponent(mailto.slice('mailto:'.length));
