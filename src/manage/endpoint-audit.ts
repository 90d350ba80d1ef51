/** The changes of an endpoint that go into the audit log. */

import type { FieldChange } from '../postgres/queries/audit-log.ts';
import { fieldChanges } from './audit-trail.ts';
import { credentialsOf } from './endpoint-credentials.ts';
import type { EditableEndpoint } from './endpoint-patch.ts';

/**
 * Fields whose values are recorded. Of all other fields, also future ones, only the name is recorded, because the value
 * may be secret.
 */
const SHOWN = new Set([
  'url',
  'description',
  'enabled',
  'disabled_reason',
  'paused',
  'events',
  'channels',
  'filter',
  'api_version',
  'payload',
  'plain_headers',
  'signature',
  'retry',
  'breaker',
  'timeout_ms',
  'max_in_flight',
  'adaptive',
  'rate_limit',
  'region',
  'ordering',
  'fifo_on_dead',
  'follow_redirects',
  'batch',
  'debounce',
  'challenge',
  'operator',
]);

export function endpointChanges(before: EditableEndpoint, after: EditableEndpoint): FieldChange[] {
  return fieldChanges(toFields(before), toFields(after), (field) => SHOWN.has(field));
}

/** All settings in one object, without the times and counts of the endpoint. */
function toFields(endpoint: EditableEndpoint): Record<string, unknown> {
  const { url, description, metadata, enabled, disabled_reason, paused, config } = endpoint;
  const { headers, sealed_headers, sealed_settings: _sealed, ...settings } = config;
  return {
    ...settings,
    ...credentialsOf(config),
    url,
    description,
    metadata,
    enabled,
    disabled_reason,
    paused,
    headers: { ...headers, ...sealed_headers },
  };
}
