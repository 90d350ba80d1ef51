/** The chapters of the API reference, in order. Each route belongs to one. */
export const tags = {
  Events:
    'What happened, as a producer publishes it: accepted, stored, and sent to the endpoints that subscribe to it.',
  Endpoints: 'Where a tenant wants its events sent, and how: retries, limits, signatures, order.',
  Deliveries: 'A delivery is one event for one endpoint, with every attempt that was made.',
  'Dead letters':
    'Deliveries that failed and that Posthorn no longer retries. List them, send them again, or discard them.',
  Tasks: 'Work in the background, such as replays and discards of many deliveries.',
  Filters: 'Conditions on the content of events.',
  'Event types': 'The catalogue of event types, with their schemas and examples.',
  Sources:
    'Where events come from besides the API: Kafka topics, and their records that cannot become events.',
  Tenants: 'The owners of endpoints and events.',
  Notifiers: 'Messages to people about endpoints that fail and deliveries that became dead letters.',
  Keys: 'Create, list and revoke API keys and portal sessions.',
  Audit: 'Who changed what, and when.',
  Statistics: 'Figures over time, and the live tail.',
  Inboxes: 'Built-in temporary receivers, for tests.',
  Service: 'Posthorn itself: its health, its metrics and its API.',
} as const;
export type Tag = keyof typeof tags;
