/**
 * The session: the signed-in key, its permissions and the selected tenant. The key is kept in memory and in the tab's
 * session storage (so that a reload does not sign out), never in a URL and never in storage that outlives the tab.
 */
import type { CurrentKey } from '@posthorn/client';
import { callApi, onUnauthorized, setApiKey } from './client.ts';
import { asApiError, clearQueries } from './query.ts';
import { createStore, useStore } from './store.ts';

export interface Session extends CurrentKey {
  /** Null: all tenants that the key can read. */
  readonly selectedTenant: string | null;
}

export type SessionState =
  | { kind: 'starting'; notice: string | null }
  | { kind: 'signed-out'; notice: string | null }
  | { kind: 'signed-in'; session: Session };

const KEY_ITEM = 'posthorn.key';
const TENANT_ITEM = 'posthorn.tenant';
const RETRY_MS = 2_000;
const state = createStore<SessionState>({ kind: 'starting', notice: null });

export const useSessionState = (): SessionState => useStore(state);

export function useSession(): Session {
  const current = useStore(state);
  if (current.kind !== 'signed-in') throw new Error('useSession was called while signed out');
  return current.session;
}

export interface Permissions {
  readonly canWrite: boolean;
  readonly isAdmin: boolean;
  readonly canSeeAllTenants: boolean;
  /** The server has the built-in receiver. */
  readonly hasInbox: boolean;
}

/** What the key is allowed to do. Buttons for anything else are hidden. */
export function usePermissions(): Permissions {
  const { scope, scopes, tenant, capabilities } = useSession();
  return {
    canWrite: scope !== 'read' && (scopes === null || scopes.some((name) => !name.endsWith(':read'))),
    isAdmin: scope === 'admin' && scopes === null,
    canSeeAllTenants: tenant === null,
    hasInbox: capabilities.inbox,
  };
}

/** Starts a session with the key. Throws `ApiError` if the API rejects it. */
export async function signIn(key: string): Promise<void> {
  setApiKey(key);
  try {
    const current = await callApi<CurrentKey>('GET', '/v1/keys/current');
    sessionStorage.setItem(KEY_ITEM, key);
    const selectedTenant = current.tenant === null ? sessionStorage.getItem(TENANT_ITEM) : null;
    state.set({ kind: 'signed-in', session: { ...current, selectedTenant } });
  } catch (error) {
    setApiKey(null);
    throw error;
  }
}

export function signOut(notice: string | null = null): void {
  setApiKey(null);
  sessionStorage.removeItem(KEY_ITEM);
  sessionStorage.removeItem(TENANT_ITEM);
  clearQueries();
  state.set({ kind: 'signed-out', notice });
}

export function selectTenant(tenant: string | null): void {
  const current = state.get();
  if (current.kind !== 'signed-in') return;
  if (tenant === null) sessionStorage.removeItem(TENANT_ITEM);
  else sessionStorage.setItem(TENANT_ITEM, tenant);
  state.set({ kind: 'signed-in', session: { ...current.session, selectedTenant: tenant } });
}

/** Signs in with the key of the tab's storage, if there is one. Retries until the server answers. */
export async function resumeSession(): Promise<void> {
  onUnauthorized(() => signOut('Your key is no longer accepted. It may have been revoked.'));
  const key = sessionStorage.getItem(KEY_ITEM);
  if (key === null) return state.set({ kind: 'signed-out', notice: null });
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
