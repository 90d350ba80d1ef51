import type { AuditEntry } from '@posthorn/client';

/** How the audit log shows who made a change. `isKey`: the first characters of a key, which continue. */
export function nameActor({ id, prefix }: Pick<AuditEntry['actor'], 'id' | 'prefix'>): {
  readonly name: string;
  readonly isKey: boolean;
} {
  // Posthorn itself disables endpoints by its rules.
  if (id === 'posthorn') return { name: 'Posthorn', isKey: false };
  if (id === 'operator') return { name: 'Operator', isKey: false };
  if (id.startsWith('user:')) return { name: prefix ?? id.slice('user:'.length), isKey: false };
  return prefix === null
    ? { name: 'configured admin key', isKey: false }
    : { name: `${prefix}…`, isKey: true };
}
