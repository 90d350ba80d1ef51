/** The address is the state: pages, tabs and filters can all be linked to. */
import type { AnchorHTMLAttributes, MouseEvent } from 'react';
import { createStore, useStore } from './api/store.ts';

const BASE = '/console';

export interface Place {
  /** Below `/console`, beginning with a slash. */
  readonly path: string;
  readonly query: URLSearchParams;
}

function read(): Place {
  const path = window.location.pathname.slice(BASE.length).replace(/\/+$/, '');
  return { path: path === '' ? '/' : path, query: new URLSearchParams(window.location.search) };
}

const place = createStore<Place>(read());
window.addEventListener('popstate', () => place.set(read()));

export const usePlace = (): Place => useStore(place);
export const currentPlace = (): Place => place.get();

export function href(to: string): string {
  return to === '/' ? BASE : `${BASE}${to}`;
}

export function navigate(to: string, { replace = false } = {}): void {
  const address = href(to);
  if (address === window.location.pathname + window.location.search) return;
  const samePage = address.split('?')[0] === window.location.pathname;
  if (replace) window.history.replaceState(null, '', address);
  else window.history.pushState(null, '', address);
  place.set(read());
  if (samePage) return;
  window.scrollTo(0, 0);
  // A screen reader goes on at the new page, not at the link that is gone.
  document.querySelector<HTMLElement>('main')?.focus({ preventScroll: true });
}

/** Sets and removes parameters of the address, on the same page. */
export function setQuery(changes: Record<string, string | null>): void {
  const { path, query } = place.get();
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') next.delete(name);
    else next.set(name, value);
  }
  const text = next.toString();
  navigate(text === '' ? path : `${path}?${text}`, { replace: true });
}

/** `match('/events/:id', '/events/evt_1')` → `{ id: 'evt_1' }` */
export function match(pattern: string, path: string): Record<string, string> | null {
  const wanted = pattern.split('/');
  const given = path.split('/');
  if (wanted.length !== given.length) return null;
  const params: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const value = given[index]!;
    if (part.startsWith(':')) params[part.slice(1)] = decodeURIComponent(value);
    else if (part !== value) return null;
  }
  return params;
}

type LinkProps = Omit<AnchorHTMLAttributes<HTMLAnchorElement>, 'href'> & { to: string };

export function Link({ to, onClick, ...rest }: LinkProps) {
  const follow = (event: MouseEvent<HTMLAnchorElement>): void => {
    onClick?.(event);
    const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (event.defaultPrevented || !plain) return;
    event.preventDefault();
    navigate(to);
  };
  return <a href={href(to)} onClick={follow} {...rest} />;
}
