import type { ReactNode } from 'react';
import { ApiKeysPage } from './pages/api-keys.tsx';
import { AuditLogPage } from './pages/audit-log.tsx';
import { BatchPage } from './pages/batch.tsx';
import { DeadLettersPage } from './pages/dead-letters.tsx';
import { DeliveryPage } from './pages/delivery.tsx';
import { EndpointPage } from './pages/endpoint.tsx';
import { EndpointsPage } from './pages/endpoints.tsx';
import { EventPage } from './pages/event.tsx';
import { EventTypePage } from './pages/event-type.tsx';
import { EventTypesPage } from './pages/event-types.tsx';
import { EventsPage } from './pages/events.tsx';
import { GuidedStartPage } from './pages/guided-start.tsx';
import { InboxPage } from './pages/inbox.tsx';
import { InboxesPage } from './pages/inboxes.tsx';
import { LiveTailPage } from './pages/live-tail.tsx';
import { NewEndpointPage } from './pages/new-endpoint.tsx';
import { NoticesPage } from './pages/notices.tsx';
import { OverviewPage } from './pages/overview.tsx';
import { StoragePage } from './pages/storage.tsx';
import { TaskPage } from './pages/task.tsx';
import { TasksPage } from './pages/tasks.tsx';
import { TenantsPage } from './pages/tenants.tsx';

type Params = Record<string, string>;

export const routes: readonly (readonly [string, (params: Params) => ReactNode])[] = [
  ['/', () => <OverviewPage />],
  ['/endpoints', () => <EndpointsPage />],
  ['/endpoints/new', () => <NewEndpointPage />],
  ['/endpoints/:id', ({ id }) => <EndpointPage id={id!} />],
  ['/events', () => <EventsPage />],
  ['/events/:id', ({ id }) => <EventPage id={id!} />],
  ['/deliveries/:id', ({ id }) => <DeliveryPage id={id!} />],
  ['/batches/:id', ({ id }) => <BatchPage id={id!} />],
  ['/dead-letters', () => <DeadLettersPage />],
  ['/tasks', () => <TasksPage />],
  ['/tasks/:id', ({ id }) => <TaskPage id={id!} />],
  ['/live', () => <LiveTailPage />],
  ['/event-types', () => <EventTypesPage />],
  ['/notices', () => <NoticesPage />],
  ['/event-types/:name', ({ name }) => <EventTypePage name={name!} />],
  ['/tenants', () => <TenantsPage />],
  ['/keys', () => <ApiKeysPage />],
  ['/audit', () => <AuditLogPage />],
  ['/storage', () => <StoragePage />],
  ['/inbox', () => <InboxesPage />],
  ['/inbox/:token', ({ token }) => <InboxPage token={token!} />],
  ['/start', () => <GuidedStartPage />],
];
