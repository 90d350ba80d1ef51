/** The chapters of the API reference, in its order. A route is in one of them. */
export const tags = {
  Events:
    'What happened, as a producer publishes it: accepted, stored, and fanned out to the endpoints that want it.',
  Endpoints: 'Where a tenant wants its events sent, and how: retries, limits, signatures, order.',
  Deliveries: 'One event on its way to one endpoint, with every attempt that was made.',
  'Dead letters': 'Deliveries that were given up. Look at them, send them again, or discard them.',
  Tasks: 'Work in the background: replays and discards of many deliveries.',
  Filters: 'Conditions on the content of events.',
  'Event types': 'The catalogue: what types of events there are, and what they look like.',
  Tenants: 'Whom endpoints and events belong to.',
  Keys: 'API keys: made, listed, revoked.',
  Portal: 'Access for your customers to their own endpoints and deliveries.',
  Audit: 'Who changed what, and when.',
  Statistics: 'Figures over time, and what happens just now.',
  Inboxes: 'Throw-away receivers, to try things out with.',
  Service: 'About Posthorn itself: is it alive, is it ready, what can it do.',
} as const;
export type Tag = keyof typeof tags;
