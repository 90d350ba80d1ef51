import { idPrefixes, publicId, timeOfId } from '../../domain/ids.ts';
import type { AuditEntry } from '../../postgres/queries/audit-log.ts';
import type { Shown } from '../openapi/describe.ts';
import type { AuditEntrySchema } from './schema.ts';

export function showAuditEntry(entry: AuditEntry): Shown<typeof AuditEntrySchema> {
  return {
    id: publicId(idPrefixes.audit, entry.id),
    created_at: new Date(timeOfId(entry.id)),
    action: entry.action,
    tenant: entry.tenant,
    actor: { id: entry.actor, prefix: entry.actor_name, scope: entry.scope },
    object: { type: entry.object_type, id: entry.object_id },
    changes: entry.changes,
    request_id: entry.request_id,
    address: entry.address,
  };
}
