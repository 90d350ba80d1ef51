/** Tokens of inboxes, the temporary receivers at `/inbox/{token}`. */
export const INBOX_TOKEN_BYTES = 16;
/** 16 bytes in base64url. */
export const INBOX_TOKEN = /^[\w-]{22}$/;

const MAY_HAVE_TOKEN = /[\w-]{22}|[%\t\r\n]/;

/**
 * Returns the parts of the URL's path that look like the token of an inbox. Only the path counts: with a query, an escaped
 * character or another name of this host, a URL leads to the same inbox.
 */
export function inboxTokensIn(url: string): readonly string[] {
  // Most URLs need not be parsed.
  if (!MAY_HAVE_TOKEN.test(url)) return [];
  try {
    return decodeURIComponent(new URL(url).pathname)
      .split('/')
      .filter((part) => INBOX_TOKEN.test(part));
  } catch {
    return [];
  }
}
