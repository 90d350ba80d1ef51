/** The chapters of the API reference, in order. Each route belongs to one. */
export const tags = {
  Events:
    'What happened, as a producer publishes it: accepted, stored, and sent to the endpoints that subscribe to it.',
  Endpoints: 'Where a tenant wants its events sent, and how: retries, limits, signatures, order.',
  Deliveries: 'One event on its way to one endpoint, with every attempt that was made.',
  'Dead letters': 'Deliveries that failed for good. List them, send them again, or discard them.',
  Tasks: 'Replays and discards of many deliveries, in the background.',
  Filters: 'Conditions on the content of events.',
  'Event types': 'The catalogue of event types, with their schemas and examples.',
  Tenants: 'The owners of endpoints and events.',
  Notifiers: 'Messages to people about endpoints that fail and deliveries that are given up.',
  Keys: 'Create, list and revoke API keys.',
  Portal: 'Access for your customers to their own endpoints and deliveries.',
  Audit: 'Who changed what, and when.',
  Statistics: 'Figures over time, and the live tail.',
  Inboxes: 'Temporary receivers, to try things out with.',
  Service: 'Posthorn itself: its health, its metrics and its API.',
} as const;
export type Tag = keyof typeof tags;
