/**
 * Who is signed in. The key lives in memory and in the tab's session storage (so that a reload does not sign out),
 * never in the address and never in storage that outlives the tab.
 */
import { call, onRefused, setKey } from './client.ts';
import { asApiError, clearQueries } from './query.ts';
import { createStore, useStore } from './store.ts';
import type { CurrentKey } from './types.ts';

export interface Session extends CurrentKey {
  /** The tenant that is looked at; null: all that the key may see. */
  readonly shownTenant: string | null;
}

type State =
  | { kind: 'starting'; notice: string | null }
  | { kind: 'out'; notice: string | null }
  | { kind: 'in'; session: Session };

const KEY = 'posthorn.key';
const TENANT = 'posthorn.tenant';
const RETRY_MS = 2_000;
const state = createStore<State>({ kind: 'starting', notice: null });

export const useSessionState = (): State => useStore(state);

export function useSession(): Session {
  const now = useStore(state);
  if (now.kind !== 'in') throw new Error('not signed in');
  return now.session;
}

/** What the key may do: buttons for anything else are not shown. */
export function useMay(): { write: boolean; admin: boolean; allTenants: boolean; inbox: boolean } {
  const { scope, tenant, capabilities } = useSession();
  return {
    write: scope !== 'read',
    admin: scope === 'admin',
    allTenants: tenant === null,
    inbox: capabilities?.inbox === true,
  };
}

export async function signIn(key: string): Promise<void> {
  setKey(key);
  try {
    const current = await call<CurrentKey>('GET', '/v1/keys/current');
    sessionStorage.setItem(KEY, key);
    const shownTenant = current.tenant === null ? sessionStorage.getItem(TENANT) : null;
    state.set({ kind: 'in', session: { ...current, shownTenant } });
  } catch (error) {
    setKey(null);
    throw error;
  }
}

export function signOut(notice: string | null = null): void {
  setKey(null);
  sessionStorage.removeItem(KEY);
  sessionStorage.removeItem(TENANT);
  clearQueries();
  state.set({ kind: 'out', notice });
}

export function showTenant(tenant: string | null): void {
  const now = state.get();
  if (now.kind !== 'in') return;
  if (tenant === null) sessionStorage.removeItem(TENANT);
  else sessionStorage.setItem(TENANT, tenant);
  state.set({ kind: 'in', session: { ...now.session, shownTenant: tenant } });
}

export async function resumeSession(): Promise<void> {
  onRefused(() => signOut('Your key is not accepted any more. It may have been revoked.'));
  const key = sessionStorage.getItem(KEY);
  if (key === null) return state.set({ kind: 'out', notice: null });
  for (;;) {
    try {
      return await signIn(key);
    } catch (error) {
      const { status, message } = asApiError(error);
      if (status >= 400 && status < 500 && status !== 429) return signOut(message);
      state.set({ kind: 'starting', notice: message });
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}
