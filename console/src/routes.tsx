import type { ReactNode } from 'react';
import { AuditPage } from './pages/audit.tsx';
import { DeadLettersPage } from './pages/dead-letters.tsx';
import { DeliveryPage } from './pages/delivery.tsx';
import { EndpointPage } from './pages/endpoint.tsx';
import { EndpointsPage } from './pages/endpoints.tsx';
import { EventPage } from './pages/event.tsx';
import { EventTypesPage } from './pages/event-types.tsx';
import { EventsPage } from './pages/events.tsx';
import { InboxesPage, InboxPage } from './pages/inbox.tsx';
import { KeysPage } from './pages/keys.tsx';
import { LivePage } from './pages/live.tsx';
import { NewEndpointPage } from './pages/new-endpoint.tsx';
import { OverviewPage } from './pages/overview.tsx';
import { StartPage } from './pages/start.tsx';

type Params = Record<string, string>;

export const routes: readonly (readonly [string, (params: Params) => ReactNode])[] = [
  ['/', () => <OverviewPage />],
  ['/endpoints', () => <EndpointsPage />],
  ['/endpoints/new', () => <NewEndpointPage />],
  ['/endpoints/:id', ({ id }) => <EndpointPage id={id!} />],
  ['/events', () => <EventsPage />],
  ['/events/:id', ({ id }) => <EventPage id={id!} />],
  ['/deliveries/:id', ({ id }) => <DeliveryPage id={id!} />],
  ['/dead-letters', () => <DeadLettersPage />],
  ['/live', () => <LivePage />],
  ['/event-types', () => <EventTypesPage />],
  ['/keys', () => <KeysPage />],
  ['/audit', () => <AuditPage />],
  ['/inbox', () => <InboxesPage />],
  ['/inbox/:token', ({ token }) => <InboxPage token={token!} />],
  ['/start', () => <StartPage />],
];
