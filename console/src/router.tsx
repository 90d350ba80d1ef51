/** The URL holds the state, so that every page, tab and filter can be linked to. */
import type { AnchorHTMLAttributes, MouseEvent } from 'react';
import { createStore, useStore } from './api/store.ts';

const BASE = '/console';

export interface ConsoleLocation {
  /** The path below `/console`, with a leading slash. */
  readonly path: string;
  readonly query: URLSearchParams;
}

function readLocation(): ConsoleLocation {
  const path = window.location.pathname.slice(BASE.length).replace(/\/+$/, '');
  return { path: path === '' ? '/' : path, query: new URLSearchParams(window.location.search) };
}

const location = createStore<ConsoleLocation>(readLocation());
window.addEventListener('popstate', () => location.set(readLocation()));

export const useLocation = (): ConsoleLocation => useStore(location);

export function toHref(to: string): string {
  return to === '/' ? BASE : `${BASE}${to}`;
}

export function navigate(to: string, { replace = false } = {}): void {
  const href = toHref(to);
  if (href === window.location.pathname + window.location.search) return;
  const isSamePage = href.split('?')[0] === window.location.pathname;
  if (replace) window.history.replaceState(null, '', href);
  else window.history.pushState(null, '', href);
  location.set(readLocation());
  if (isSamePage) return;
  window.scrollTo(0, 0);
  // A screen reader continues at the focus: at the new page, not at the link that was clicked.
  document.querySelector<HTMLElement>('main')?.focus({ preventScroll: true });
}

/** Sets query parameters of the current page; null and '' remove one. */
export function setQuery(changes: Record<string, string | null>): void {
  const { path, query } = location.get();
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') next.delete(name);
    else next.set(name, value);
  }
  const text = next.toString();
  navigate(text === '' ? path : `${path}?${text}`, { replace: true });
}

/** `matchPath('/events/:id', '/events/evt_1')` → `{ id: 'evt_1' }`; null if the path does not match. */
export function matchPath(pattern: string, path: string): Record<string, string> | null {
  const patternParts = pattern.split('/');
  const pathParts = path.split('/');
  if (patternParts.length !== pathParts.length) return null;
  const params: Record<string, string> = {};
  for (const [index, part] of patternParts.entries()) {
    const value = pathParts[index]!;
    if (part.startsWith(':')) params[part.slice(1)] = decodeURIComponent(value);
    else if (part !== value) return null;
  }
  return params;
}

type LinkProps = Omit<AnchorHTMLAttributes<HTMLAnchorElement>, 'href'> & { to: string };

export function Link({ to, onClick, ...rest }: LinkProps) {
  const onLinkClick = (event: MouseEvent<HTMLAnchorElement>): void => {
    onClick?.(event);
    const isPlainClick =
      event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    // Clicks with a modifier open a new tab: the browser handles them.
    if (event.defaultPrevented || !isPlainClick) return;
    event.preventDefault();
    navigate(to);
  };
  return <a href={toHref(to)} onClick={onLinkClick} {...rest} />;
}
