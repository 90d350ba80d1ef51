/**
 * Portal sessions: another site's server creates one and leads the browser to `/console#portal=phk_…`, perhaps with
 * `&theme=dark` and `&accent=#0f766e`. The token is removed from the address at once and kept like a key, in this tab only.
 */
import { applyAccent, setTheme } from '../ui/theme.ts';

const PORTAL_ITEM = 'posthorn.portal';
const ACCENT = /^#[0-9a-f]{6}$/i;

/** The token in the address, or null. Later calls return null. */
export function takePortalToken(): string | null {
  const settings = new URLSearchParams(window.location.hash.slice(1));
  const token = settings.get('portal');
  if (token === null) return null;
  window.history.replaceState(null, '', window.location.pathname + window.location.search);
  settings.delete('portal');
  sessionStorage.setItem(PORTAL_ITEM, settings.toString());
  return token;
}

/** Whether this tab shows the portal. It does so until another key signs in. */
export const isPortal = (): boolean => sessionStorage.getItem(PORTAL_ITEM) !== null;

export const leavePortal = (): void => sessionStorage.removeItem(PORTAL_ITEM);

/** Applies the theme and the colour that the portal's creator chose. */
export function applyAppearance(): void {
  const settings = new URLSearchParams(sessionStorage.getItem(PORTAL_ITEM) ?? '');
  const [theme, accent] = [settings.get('theme'), settings.get('accent')];
  if (theme === 'light' || theme === 'dark') setTheme(theme);
  if (accent !== null && ACCENT.test(accent)) applyAccent(accent);
}
