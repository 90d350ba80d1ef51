/** The pages of the side bar and the palette. */
import { usePermissions } from './api/session.ts';
import type { IconName } from './ui/icons.tsx';

export interface PageEntry {
  readonly to: string;
  readonly name: string;
  readonly icon: IconName;
}

const MONITORING_PAGES: readonly PageEntry[] = [
  { to: '/', name: 'Overview', icon: 'overview' },
  { to: '/events', name: 'Events', icon: 'events' },
  { to: '/endpoints', name: 'Endpoints', icon: 'endpoint' },
  { to: '/dead-letters', name: 'Dead letters', icon: 'dead' },
  { to: '/tasks', name: 'Tasks', icon: 'replay' },
  { to: '/live', name: 'Live tail', icon: 'live' },
];

/** The pages that the session's key can open, in two groups. */
export function usePageEntries(): { monitoring: readonly PageEntry[]; developers: readonly PageEntry[] } {
  const { canWrite, isAdmin, canSeeAllTenants, hasInbox } = usePermissions();
  const developers: PageEntry[] = [{ to: '/event-types', name: 'Event types', icon: 'types' }];
  if (hasInbox) developers.push({ to: '/inbox', name: 'Inbox', icon: 'inbox' });
  if (hasInbox && canWrite) developers.push({ to: '/start', name: 'Guided start', icon: 'start' });
  developers.push({ to: '/notices', name: 'Notices', icon: 'notices' });
  if (canSeeAllTenants) developers.push({ to: '/tenants', name: 'Tenants', icon: 'tenants' });
  if (isAdmin) developers.push({ to: '/keys', name: 'API keys', icon: 'keys' });
  if (isAdmin) developers.push({ to: '/storage', name: 'Storage', icon: 'storage' });
  developers.push({ to: '/audit', name: 'Audit log', icon: 'audit' });
  return { monitoring: MONITORING_PAGES, developers };
}
