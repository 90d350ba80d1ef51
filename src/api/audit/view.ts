import { idPrefixes, publicId, timeOfId } from '../../domain/ids.ts';
import { type Caller, OPERATOR } from '../../manage/caller.ts';
import { type AuditEntry, OPERATOR_SCOPE } from '../../postgres/queries/audit-log.ts';
import type { Shown } from '../openapi/describe.ts';
import type { AuditEntrySchema } from './schema.ts';

/** A tenant sees that the operator made a change, and not which person or key, nor from where. */
export function showAuditEntry(entry: AuditEntry, reader: Caller): Shown<typeof AuditEntrySchema> {
  const isHidden = reader.tenant !== null && entry.scope === OPERATOR_SCOPE;
  return {
    id: publicId(idPrefixes.audit, entry.id),
    created_at: new Date(timeOfId(entry.id)),
    action: entry.action,
    tenant: entry.tenant,
    actor: isHidden
      ? { id: OPERATOR, prefix: null, scope: entry.scope }
      : { id: entry.actor, prefix: entry.actor_name, scope: entry.scope },
    object: { type: entry.object_type, id: entry.object_id },
    changes: entry.changes,
    request_id: entry.request_id,
    address: isHidden ? '' : entry.address,
  };
}
