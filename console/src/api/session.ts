/**
 * The session: the signed-in key or person, their permissions and the selected tenant. A key is kept in memory and in the
 * tab's session storage (so that a reload does not sign out), never in a URL and never in storage that outlives the tab. A
 * person who signed in with OpenID Connect has a cookie, which this page cannot read.
 */
import type { CurrentKey } from '@posthorn/client';
import { callApi, onUnauthorized, setApiKey, setCsrfToken } from './client.ts';
import { applyAppearance, isPortal, leavePortal, takePortalToken } from './portal.ts';
import { asApiError, clearQueries } from './query.ts';
import { createStore, useStore } from './store.ts';

export interface Session extends CurrentKey {
  /** Null: all tenants that the key can read. */
  readonly selectedTenant: string | null;
}

export type SessionState =
  | { kind: 'starting'; notice: string | null }
  | { kind: 'signed-out'; notice: string | null; hasSingleSignOn?: boolean }
  | { kind: 'signed-in'; session: Session };

const KEY_ITEM = 'posthorn.key';
const TENANT_ITEM = 'posthorn.tenant';
const RETRY_MS = 2_000;
const state = createStore<SessionState>({ kind: 'starting', notice: null });

export { isPortal };

export const useSessionState = (): SessionState => useStore(state);

export function useSession(): Session {
  const current = useStore(state);
  if (current.kind !== 'signed-in') throw new Error('useSession was called while signed out');
  return current.session;
}

export interface Permissions {
  /** Whether the key may do what this scope allows. */
  readonly may: (scope: AccessScope) => boolean;
  readonly canEditEndpoints: boolean;
  readonly canReplay: boolean;
  readonly canPublish: boolean;
  /** Whether the key is not restricted to some scopes. No scope covers the audit log, tenants and inboxes. */
  readonly isUnnarrowed: boolean;
  readonly isAdmin: boolean;
  readonly canSeeAllTenants: boolean;
  /** The server has the built-in receiver, and the key may use it. */
  readonly hasInbox: boolean;
  readonly canEditInboxes: boolean;
}

export type AccessScope = NonNullable<CurrentKey['scopes']>[number];

/** What the key is allowed to do. Buttons and pages for anything else are hidden. */
export function usePermissions(): Permissions {
  const { scope, scopes, tenant, capabilities } = useSession();
  const isUnnarrowed = scopes === null;
  const may = (name: AccessScope): boolean =>
    scopes?.includes(name) ?? (scope !== 'read' || (name.endsWith(':read') && name !== 'secrets:read'));
  return {
    may,
    canEditEndpoints: may('endpoints:write'),
    canReplay: may('deliveries:replay'),
    canPublish: may('events:publish'),
    isUnnarrowed,
    isAdmin: scope === 'admin' && isUnnarrowed,
    canSeeAllTenants: tenant === null,
    hasInbox: capabilities.inbox && isUnnarrowed,
    canEditInboxes: scope !== 'read' && isUnnarrowed,
  };
}

/** Starts a session with the key that the user typed. Throws `ApiError` if the API rejects it. */
export async function signInWithKey(key: string): Promise<void> {
  await signIn(key);
  leavePortal();
}

/** Starts a session with the key. Throws `ApiError` if the API rejects it. */
async function signIn(key: string): Promise<void> {
  setApiKey(key);
  try {
    await enter();
    sessionStorage.setItem(KEY_ITEM, key);
  } catch (error) {
    setApiKey(null);
    throw error;
  }
}

async function enter(): Promise<void> {
  const current = await callApi<CurrentKey>('GET', '/v1/keys/current');
  const selectedTenant = current.tenant === null ? sessionStorage.getItem(TENANT_ITEM) : null;
  state.set({ kind: 'signed-in', session: { ...current, selectedTenant } });
}

interface BrowserSession {
  /** Whether people can sign in with OpenID Connect. */
  readonly sign_in: boolean;
  readonly session: { readonly name: string; readonly csrf_token: string } | null;
}

let hasSingleSignOn = false;

/** Why a sign-in failed, as the server's redirect says. */
const SIGN_IN_ERRORS: Readonly<Record<string, string>> = {
  no_role: 'Your account has no role in Posthorn. Ask its operator.',
  expired: 'The sign-in took too long. Try again.',
  failed: 'The sign-in failed. Try again, or ask the operator: the log has the reason.',
};

function readSignInError(): string | null {
  const code = new URLSearchParams(window.location.search).get('sign_in_error');
  if (code === null) return null;
  window.history.replaceState(null, '', window.location.pathname);
  return SIGN_IN_ERRORS[code] ?? SIGN_IN_ERRORS.failed!;
}

/** Signs in with the cookie of an earlier sign-in, or shows the sign-in page. */
async function resumeBrowserSession(): Promise<void> {
  const { sign_in, session } = await readBrowserSession();
  hasSingleSignOn = sign_in;
  if (session === null) return state.set({ kind: 'signed-out', notice: readSignInError(), hasSingleSignOn });
  setCsrfToken(session.csrf_token);
  leavePortal();
  await enter();
}

/** The only request that has the cookie without the header that proves its origin. The answer contains that header's value. */
async function readBrowserSession(): Promise<BrowserSession> {
  const response = await fetch('/auth/session', { credentials: 'same-origin', cache: 'no-store' });
  if (!response.ok) throw new Error(`Posthorn answered ${response.status}.`);
  return (await response.json()) as BrowserSession;
}

/** Ends the session. A person who signed in with OpenID Connect also loses the cookie. */
export async function endSession(): Promise<void> {
  const current = state.get();
  if (current.kind === 'signed-in' && current.session.user !== null) await callApi('POST', '/auth/logout');
  signOut();
}

export function signOut(notice: string | null = null): void {
  setApiKey(null);
  sessionStorage.removeItem(KEY_ITEM);
  sessionStorage.removeItem(TENANT_ITEM);
  clearQueries();
  state.set({ kind: 'signed-out', notice, hasSingleSignOn });
}

export function selectTenant(tenant: string | null): void {
  const current = state.get();
  if (current.kind !== 'signed-in') return;
  if (tenant === null) sessionStorage.removeItem(TENANT_ITEM);
  else sessionStorage.setItem(TENANT_ITEM, tenant);
  state.set({ kind: 'signed-in', session: { ...current.session, selectedTenant: tenant } });
}

/** Signs in with the key of the tab's storage or the browser's cookie, if there is one. Retries until the server answers. */
export async function resumeSession(): Promise<void> {
  onUnauthorized(() => {
    const current = state.get();
    const isPerson = current.kind === 'signed-in' && current.session.user !== null;
    signOut(
      isPerson
        ? 'Your session has ended. Sign in again.'
        : 'Your key is no longer accepted. It was revoked or has expired.',
    );
  });
  const key = takePortalToken() ?? sessionStorage.getItem(KEY_ITEM);
  applyAppearance();
  for (;;) {
    try {
      return await (key === null ? resumeBrowserSession() : signIn(key));
    } catch (error) {
      const { status, message } = asApiError(error);
      if (status >= 400 && status < 500 && status !== 429) return signOut(message);
      state.set({ kind: 'starting', notice: message });
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}
