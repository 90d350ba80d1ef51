export const MASK = '****';

const PASSWORD_PARAMETER = /([?&](?:password|sslpassword)=)[^&#]*/gi;

/**
 * Masks the password in a URL. Works on the text: a URL whose password contains an unescaped `#` or `@` would be parsed
 * wrongly, and a part of the password would be shown.
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
