export const MASK = '****';

const PASSWORD_PARAMETER = /([?&](?:password|sslpassword)=)[^&#]*/gi;

/**
 * An address with the password inside it masked. Works on the text, because a URL whose password holds an
 * unescaped `#` or `@` parses as something else, and then the rest of the password would be shown.
 */
export function maskUrl(url: string): string {
  const scheme = /^[a-z][a-z0-9+.-]*:\/\//i.exec(url)?.[0];
  if (scheme === undefined) return MASK;
  const rest = url.slice(scheme.length);
  const at = rest.lastIndexOf('@');
  const masked = at < 0 ? url : `${scheme}${maskUserInfo(rest.slice(0, at))}${rest.slice(at)}`;
  return masked.replace(PASSWORD_PARAMETER, `$1${MASK}`);
}

function maskUserInfo(userInfo: string): string {
  const colon = userInfo.indexOf(':');
  return colon < 0 ? userInfo : `${userInfo.slice(0, colon)}:${MASK}`;
}
