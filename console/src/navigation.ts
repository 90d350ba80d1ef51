/** The pages of the side bar and the palette. */
import { type AccessScope, usePermissions } from './api/session.ts';
import type { IconName } from './ui/icons.tsx';

export interface PageEntry {
  readonly to: string;
  readonly name: string;
  readonly icon: IconName;
}

/** A page with the scopes that its requests need. */
interface ScopedPage extends PageEntry {
  readonly needs: readonly AccessScope[];
}

const MONITORING_PAGES: readonly ScopedPage[] = [
  { to: '/', name: 'Overview', icon: 'overview', needs: ['deliveries:read'] },
  { to: '/events', name: 'Events', icon: 'events', needs: ['events:read'] },
  { to: '/endpoints', name: 'Endpoints', icon: 'endpoint', needs: ['endpoints:read'] },
  { to: '/dead-letters', name: 'Dead letters', icon: 'dead', needs: ['deliveries:read'] },
  { to: '/tasks', name: 'Tasks', icon: 'replay', needs: ['deliveries:read'] },
  { to: '/live', name: 'Live tail', icon: 'live', needs: ['deliveries:read', 'events:read'] },
];

/** The pages that the session's key can open, in two groups. */
export function usePageEntries(): { monitoring: readonly PageEntry[]; developers: readonly PageEntry[] } {
  const { may, isUnnarrowed, isAdmin, canSeeAllTenants, hasInbox, canEditInboxes } = usePermissions();
  const developers: PageEntry[] = [];
  if (may('catalogue:read')) developers.push({ to: '/event-types', name: 'Event types', icon: 'types' });
  if (hasInbox) developers.push({ to: '/inbox', name: 'Inbox', icon: 'inbox' });
  if (hasInbox && canEditInboxes) developers.push({ to: '/start', name: 'Guided start', icon: 'start' });
  if (may('endpoints:read')) developers.push({ to: '/notices', name: 'Notices', icon: 'notices' });
  if (canSeeAllTenants && isUnnarrowed) developers.push({ to: '/tenants', name: 'Tenants', icon: 'tenants' });
  if (isAdmin) developers.push({ to: '/keys', name: 'API keys', icon: 'keys' });
  if (isAdmin) developers.push({ to: '/storage', name: 'Storage', icon: 'storage' });
  if (isUnnarrowed) developers.push({ to: '/audit', name: 'Audit log', icon: 'audit' });
  return { monitoring: MONITORING_PAGES.filter(({ needs }) => needs.every(may)), developers };
}
