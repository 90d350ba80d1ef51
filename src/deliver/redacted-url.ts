export const REDACTED_LINK = '[redacted]';

/** The URL of a chat's webhook without its path, which is a credential. An e-mail address stays. */
export function withoutPath(url: string): string {
  const parsed = URL.parse(url);
  return parsed === null || parsed.protocol === 'mailto:' ? url : `${parsed.origin}/${REDACTED_LINK}`;
}
