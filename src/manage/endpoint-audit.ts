/** What of an endpoint's changes goes into the audit log. */

import { withSealed } from '../api/endpoints/auth-schema.ts';
import type { FieldChange } from '../postgres/queries/audit-log.ts';
import { fieldChanges } from './audit-trail.ts';
import type { Editable } from './endpoint-patch.ts';

/** Fields whose values may be kept. Of all others, also of those that are yet to come, only the name is. */
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
  'signature',
  'retry',
  'breaker',
  'timeout_ms',
  'max_in_flight',
  'rate_limit',
  'ordering',
  'fifo_on_dead',
  'follow_redirects',
  'batch',
  'debounce',
  'challenge',
]);

export function endpointChanges(before: Editable, after: Editable): FieldChange[] {
  return fieldChanges(flat(before), flat(after), (field) => SHOWN.has(field));
}

const flat = ({ config, ...fields }: Editable): Record<string, unknown> => {
  const { headers, sealed_headers, sealed_settings: _sealed, ...settings } = config;
  return { ...settings, ...withSealed(config), ...pick(fields), headers: { ...headers, ...sealed_headers } };
};

/** What is given may be the whole view, with times and figures. */
const pick = ({
  url,
  description,
  metadata,
  enabled,
  disabled_reason,
  paused,
}: Omit<Editable, 'config'>) => ({
  url,
  description,
  metadata,
  enabled,
  disabled_reason,
  paused,
});
